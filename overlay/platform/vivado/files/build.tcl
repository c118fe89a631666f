# Builds the bitstream: block design, synthesis, implementation, check of the timing, and the files for PYNQ in output/.
#
#   vivado -mode batch -source build.tcl -tclargs CLOCK_MHZ JOBS BOARD_FILES
#
# All three are optional. CLOCK_MHZ: another clock than design.tcl says. BOARD_FILES: a folder of board files. Needs the
# core that package_ip.tcl makes.

set here [file dirname [file normalize [info script]]]
set work [file join $here work]
set ip_repos {}
source [file join $here design.tcl]
if {[file exists [file join $here own.tcl]]} {
    source [file join $here own.tcl]
}

proc argument {index default} {
    set given [lindex $::argv $index]
    return [expr {$given eq "" ? $default : $given}]
}

# The one object that a get_... command finds; an error says what is missing, where Vivado would only warn.
proc the {command path} {
    set found [$command -quiet $path]
    if {[llength $found] != 1} {
        error "bitloom: $command must find one $path, found [llength $found]"
    }
    return $found
}

# The newest version of an IP core in the catalogue: each release of Vivado has others.
proc newest {vlnv} {
    set pattern [join [lreplace [split $vlnv :] 3 3 *] :]
    set found [lsort -dictionary [get_ipdefs -quiet $pattern]]
    if {[llength $found] == 0} {
        error "bitloom: Vivado's catalogue must hold $pattern, found none"
    }
    return [lindex $found end]
}

# Properties in Vivado's form: CONFIG.name value ...
proc config {parameters} {
    set list {}
    foreach {name value} $parameters {
        lappend list CONFIG.$name $value
    }
    return $list
}

proc set_up_project {} {
    global work part board board_part board_files_from ip_repos
    set folder [argument 2 ""]
    if {$folder ne ""} {
        set_param board.repoPaths [list [file normalize $folder]]
    }
    set found [lsort -dictionary [get_board_parts -quiet $board_part:*]]
    if {[llength $found] == 0} {
        error "bitloom: Vivado must know the board $board, found no $board_part:* (from $board_files_from):\
            install it in Vivado's board store, or say make BOARD_FILES=FOLDER"
    }
    create_project -force bitloom [file join $work project] -part $part
    set_property board_part [lindex $found end] [current_project]
    set_property ip_repo_paths [list [file join $work ip] {*}$ip_repos] [current_project]
    update_ip_catalog
}

proc add_cells {} {
    global cells ps ps_rule ps_automation ps_clock_parameter clock
    foreach row $cells {
        lassign $row instance vlnv parameters
        create_bd_cell -type ip -vlnv [newest $vlnv] $instance
        set cell [the get_bd_cells $instance]
        if {$instance eq $ps} {
            apply_bd_automation -rule $ps_rule -config $ps_automation $cell
            dict set parameters $ps_clock_parameter $clock
        }
        if {[llength $parameters] > 0} {
            set_property -dict [config $parameters] $cell
        }
    }
}

proc connect {} {
    global links nets
    foreach row $links {
        lassign $row source target
        connect_bd_intf_net -boundary_type upper [the get_bd_intf_pins $source] [the get_bd_intf_pins $target]
    }
    foreach row $nets {
        set pins {}
        foreach path $row {
            lappend pins [the get_bd_pins $path]
        }
        connect_bd_net {*}$pins
    }
}

# Registers where the driver's simulation has them; then the memory, as the DMA sees it, where the processor has it.
proc assign_addresses {} {
    global addresses ps
    set space [the get_bd_addr_spaces $ps/Data]
    foreach row $addresses {
        lassign $row interface base size
        set segment [get_bd_addr_segs -of_objects [the get_bd_intf_pins $interface]]
        assign_bd_address -offset $base -range $size -target_address_space $space $segment
    }
    assign_bd_address
}

proc make_block_design {} {
    global ps ps_clock clock
    create_bd_design bitloom
    add_cells
    connect
    assign_addresses
    validate_bd_design
    save_bd_design
    set given [expr {[get_property CONFIG.FREQ_HZ [the get_bd_pins $ps/$ps_clock]] / 1e6}]
    puts "bitloom: clock $given MHz, asked for $clock MHz"
    set file [get_files bitloom.bd]
    generate_target all $file
    make_wrapper -files $file -top -import
    set_property top bitloom_wrapper [current_fileset]
    update_compile_order -fileset sources_1
}

proc implement {} {
    global work here
    add_files -fileset constrs_1 -norecurse [file join $here constraints.xdc]
    launch_runs impl_1 -to_step write_bitstream -jobs [argument 1 4]
    wait_on_run impl_1
    if {[get_property PROGRESS [get_runs impl_1]] ne "100%"} {
        error "bitloom: impl_1 must complete, its status is [get_property STATUS [get_runs impl_1]]:\
            see [file join $work project bitloom.runs]"
    }
    open_run impl_1
    report_timing_summary -file [file join $work timing.rpt]
    report_utilization -hierarchical -file [file join $work utilization.rpt]
}

# Worst slack in ns; kind is setup or hold. A design without timed paths has lost its clock.
proc worst_slack {kind} {
    set paths [get_timing_paths -$kind -max_paths 1 -nworst 1]
    if {[llength $paths] == 0} {
        error "bitloom: $kind must be timed, found no path with a clock"
    }
    return [get_property SLACK [lindex $paths 0]]
}

proc check_timing {} {
    global work clock
    set wns [worst_slack setup]
    set whs [worst_slack hold]
    puts "bitloom: WNS $wns ns, WHS $whs ns at $clock MHz"
    if {$wns < 0 || $whs < 0} {
        error "bitloom: slack must be >= 0, got WNS $wns ns and WHS $whs ns at $clock MHz:\
            see [file join $work timing.rpt], or ask for a slower clock, make CLOCK_MHZ=..."
    }
}

# All files under one stem with a hash of the bitstream: a board does not take a firmware file twice under one name.
# Vivado's own libraries are not for programs of the system, hence env.
proc copy_out {} {
    global work here name manifest programs
    set bit [file join $work project bitloom.runs impl_1 bitloom_wrapper.bit]
    set handoff [file join sources_1 bd bitloom hw_handoff bitloom.hwh]
    set hwh [file join $work project bitloom.gen $handoff]
    if {![file exists $hwh]} {
        set hwh [file join $work project bitloom.srcs $handoff] ;# up to Vivado 2020.1
    }
    set hash [string range [exec env -u LD_LIBRARY_PATH sha256sum < $bit] 0 11]
    set output [file join $here output]
    set stem [file join $output [regsub -all {[^A-Za-z0-9_]} $name _]_$hash]
    file mkdir $output
    file copy -force $hwh $stem.hwh
    file copy -force [file join $here $manifest] $stem.manifest.json
    foreach program $programs {
        file copy -force [file join $here $program] [file join $output $program]
    }
    write_hw_platform -fixed -include_bit -force -file $stem.xsa
    file copy -force $bit $stem.bit
    puts "bitloom: $stem.bit"
}

set clock [argument 0 $clock_mhz]
set_up_project
make_block_design
implement
check_timing
copy_out
close_project
