"""A report on a build: one HTML page that loads nothing from elsewhere, and one PNG sheet.

    build --measure--> counters of batches -.
      `---compiled---> plan, order ---------+--gather--> Report --page, blocks, plots--> HTML
            layer_work, memories, ... ------'               `----sheet, plots--> PNG

Everything that the pages show stands in Report, which is plain data. Of the same build and the same run they are the
same bytes. Needs the extra ``report``.
"""
