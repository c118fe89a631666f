# Packages each core as an IP core, in work/ip: its ports as bus interfaces, every register and every field.
# Vivado copies registers and fields into the .hwh, where pynq finds them as register_map.
#
#   vivado -mode batch -source package_ip.tcl

set here [file dirname [file normalize [info script]]]
set work [file join $here work]
set ip_repos {}
source [file join $here design.tcl]
if {[file exists [file join $here own.tcl]]} {
    source [file join $here own.tcl]
}
file delete -force [file join $work ip]

foreach tables $cores {
    source [file join $here $tables]

    # A project only to read the Verilog. What Vivado infers from the names of ports goes: all of it is stated below.
    create_project -force package [file join $work package] -part $part
    foreach source $sources {
        add_files -norecurse [file join $here $source]
    }
    set_property top $core_top [current_fileset]
    update_compile_order -fileset sources_1
    ipx::package_project -root_dir [file join $work ip $core_name] -vendor $core_vendor -library $core_library -taxonomy /UserIP \
        -import_files -force
    set core [ipx::current_core]
    ipx::remove_all_bus_interface $core
    foreach map [ipx::get_memory_maps -of_objects $core] {
        ipx::remove_memory_map [get_property NAME $map] $core
    }

    set_property name $core_name $core
    set_property version $core_version $core
    set_property display_name $core_display_name $core
    set_property description $core_description $core
    set_property supported_families {zynq Production zynquplus Production} $core

    foreach row $interfaces {
        lassign $row name bus_type signals mode ports settings
        set bus [ipx::add_bus_interface $name $core]
        set_property bus_type_vlnv $bus_type $bus
        set_property abstraction_type_vlnv $signals $bus
        set_property interface_mode $mode $bus
        foreach {signal port} $ports {
            set_property physical_name $port [ipx::add_port_map $signal $bus]
        }
        foreach {parameter value} $settings {
            set_property value $value [ipx::add_bus_parameter $parameter $bus]
        }
    }

    # What the core itself reaches by AXI4.
    foreach row $address_spaces {
        lassign $row name bytes width
        set space [ipx::add_address_space $name $core]
        set_property range $bytes $space
        set_property width $width $space
        set_property master_address_space_ref $name [ipx::get_bus_interfaces $name -of_objects $core]
    }

    # The registers: one block in the memory map of the AXI4-Lite interface.
    set map [ipx::add_memory_map $memory_map $core]
    set_property slave_memory_map_ref $memory_map [ipx::get_bus_interfaces $memory_map -of_objects $core]
    set block [ipx::add_address_block $address_block $map]
    set_property base_address 0 $block
    set_property range $space_bytes $block
    set_property width 32 $block
    set_property usage register $block
    set_property access read-write $block
    foreach row $registers {
        lassign $row name offset access description
        set register [ipx::add_register $name $block]
        set_property address_offset $offset $register
        set_property size 32 $register
        set_property access $access $register
        set_property description $description $register
    }
    foreach row $fields {
        lassign $row register name lowest bits access written description
        set field [ipx::add_field $name [ipx::get_registers $register -of_objects $block]]
        set_property bit_offset $lowest $field
        set_property bit_width $bits $field
        set_property access $access $field
        set_property description $description $field
        if {$written ne ""} {
            set_property modified_write_value $written $field
        }
    }

    # Parameters that change nothing in the Verilog; they tell a reader of the .hwh which device this is.
    foreach row $parameters {
        lassign $row name value
        set parameter [ipx::add_user_parameter $name $core]
        set_property value_resolve_type user $parameter
        set_property value_format string $parameter
        set_property value $value $parameter
    }

    ipx::create_xgui_files $core
    ipx::update_checksums $core
    ipx::check_integrity $core
    ipx::save_core $core
    close_project
    puts "bitloom: packaged $core_name in [file join $work ip $core_name]"
}
