//! Types of collectd 5.12, for machines without a types.db: names, kinds and limits, in an order of our own.

/// Types with one source named `value`: its kind and limits, and the names of the types.
pub(super) const SINGLE: &[(&str, &str)] = &[
    ("ABSOLUTE:0:U", "absolute"),
    ("COUNTER:0:U", "dpdk_telemetry"),
    ("COUNTER:U:U", "counter"),
    (
        "DERIVE:0:U",
        "apache_bytes apache_requests ath_stat cache_eviction cache_operation cache_result \
         ceph_rate commands connections contextswitch cookies cpu derive disk_ops_complex \
         dns_answer dns_notify dns_opcode dns_qtype dns_query dns_question dns_rcode dns_reject \
         dns_request dns_resolver dns_response dns_transfer dns_update dns_zops drbd_resource \
         errors evicted_keys expired_keys filter_result fork_rate fscache_stat hash_collisions \
         http_request_methods http_requests http_response_codes ib_errors ib_link_error_recovery \
         ib_xmit_wait if_collisions if_multicast if_rx_dropped if_rx_errors if_rx_nohandler \
         if_rx_octets if_rx_packets if_tx_dropped if_tx_errors if_tx_octets if_tx_packets \
         invocations ipt_bytes ipt_packets irq job_stats memcached_command memcached_ops \
         memory_bandwidth memory_throttle_count mutex_operations mysql_bpool_counters \
         mysql_commands mysql_handler mysql_innodb_data mysql_innodb_dblwr mysql_innodb_log \
         mysql_innodb_pages mysql_innodb_row_lock mysql_innodb_rows mysql_locks \
         mysql_log_position mysql_select mysql_slow_queries mysql_sort mysql_sort_merge_passes \
         mysql_sort_rows nfs_procedure nginx_requests node_stat operations packets perf \
         pf_counters pf_limits pf_source pf_state pg_blks pg_n_tup_c pg_scan pg_xact \
         protocol_counter redis_command_cputime slurm_backfilled_jobs slurm_cycle_depth \
         slurm_cycle_duration slurm_cycles slurm_job_stats slurm_queue_length swap_io total_bytes \
         total_connections total_events total_objects total_operations total_requests \
         total_sessions total_threads total_time_in_ms total_values transitions virt_cpu_total \
         virt_vcpu vmpage_action",
    ),
    (
        "GAUGE:0:U",
        "arc_l2_size arc_ratio bad_peb_count blocked_clients bucket bytes capacity \
         changes_since_last_save charge clock_last_meas clock_mode clock_reachability clock_state \
         clock_stratum count cpufreq current_connections current_sessions delay_rate df_complex \
         df_inodes dilution_of_precision disk_allocation disk_capacity disk_error disk_physical \
         email_check email_count email_size fanspeed file_handles file_size files flow freepages \
         frequency ib_rate ipc latency links max_ec md_disks memcached_connections \
         memcached_items mysql_bpool_bytes mysql_bpool_pages nginx_connections \
         nvme_crc_error_count nvme_critical_comp_time nvme_ctrl_busy_time nvme_data_units_read \
         nvme_data_units_written nvme_end_to_end_error_detection_count nvme_erase_fail_count \
         nvme_host_bytes_written nvme_host_commands_read nvme_host_commands_written \
         nvme_media_errors nvme_nand_bytes_written nvme_num_err_log_entries \
         nvme_pll_lock_loss_count nvme_power_cycles nvme_power_on_hours nvme_program_fail_count \
         nvme_retry_buffer_overflow_count nvme_thermal_mgmt_temp1_total_time \
         nvme_thermal_mgmt_temp1_transition_count nvme_thermal_mgmt_temp2_total_time \
         nvme_thermal_mgmt_temp2_transition_count nvme_thermal_throttle_status \
         nvme_timed_workload_media_wear nvme_timed_workload_timer nvme_unsafe_shutdowns \
         nvme_warning_temp_time nvme_wear_leveling objects operations_per_second \
         pending_operations pf_states pg_db_size pg_n_tup_g pg_numbackends pools pressure pubsub \
         queue_length records requests response_code response_time route_etx route_metric routes \
         satellites signal_quality slurm_cycle_last slurm_job_state slurm_last_cycle_depth \
         slurm_node_state smart_badsectors smart_powercycles smart_poweron snr spam_check threads \
         time_ref timeleft uncore_ratio vcpu volatile_changes",
    ),
    (
        "GAUGE:U:U",
        "ceph_bytes ceph_latency clock_last_update current energy energy_wh gauge multimeter \
         power root_delay root_dispersion spam_score spl tdp temperature voltage",
    ),
    (
        "GAUGE:0:65535",
        "apache_connections apache_idle_workers apache_scoreboard ath_nodes backends ping \
         ping_stddev ps_state segments users vcl vs_processes vs_threads",
    ),
    (
        "GAUGE:0:4294967295",
        "bitrate conntrack dns_qtype_cached entropy ib_cap_mask tcp_connections uptime \
         vmpage_number",
    ),
    (
        "GAUGE:-1000000:1000000",
        "delay frequency_error frequency_offset time_dispersion time_offset time_offset_ntp \
         time_offset_rms",
    ),
    (
        "GAUGE:0:1",
        "bool cpu_affinity ping_droprate pstates_enabled sysevent turbo_enabled",
    ),
    (
        "GAUGE:0:9223372036854775807",
        "ps_code ps_data ps_rss ps_stacksize ps_vm vs_memory",
    ),
    (
        "GAUGE:0:100",
        "cache_ratio humidity nvme_avail_spare nvme_avail_spare_thresh \
         nvme_timed_workload_host_reads",
    ),
    (
        "GAUGE:0:18446744073709551615",
        "buffer controller health media timestamp",
    ),
    (
        "GAUGE:0:15",
        "ib_phys_state ib_sm_sl ib_state nvme_endu_grp_crit_warn_sumry",
    ),
    (
        "GAUGE:-300:300",
        "nvme_temp_sensor nvme_temperature smart_temperature",
    ),
    ("GAUGE:0:100.1", "percent percent_bytes percent_inodes"),
    ("GAUGE:0:1000000", "clock_skew_ppm players"),
    ("GAUGE:0:255", "node_rssi nvme_percent_used"),
    ("GAUGE:0:281474976710656", "memory memory_lua"),
    ("GAUGE:0:32767", "ib_lid ib_sm_lid"),
    ("GAUGE:U:0", "signal_noise signal_power"),
    ("GAUGE:0:1099511627776", "swap"),
    ("GAUGE:0:1125899906842623", "cache_size"),
    ("GAUGE:0:127", "node_tx_rate"),
    ("GAUGE:0:2", "compression_ratio"),
    ("GAUGE:0:31", "nvme_critical_warning"),
    ("GAUGE:0:7", "ib_lid_mask_count"),
];

/// The other types, each with its sources.
pub(super) const OTHERS: &[&str] = &[
    "arc_counts demand_data:COUNTER:0:U demand_metadata:COUNTER:0:U prefetch_data:COUNTER:0:U prefetch_metadata:COUNTER:0:U",
    "arc_l2_bytes read:COUNTER:0:U write:COUNTER:0:U",
    "arc_size current:GAUGE:0:U target:GAUGE:0:U minlimit:GAUGE:0:U maxlimit:GAUGE:0:U",
    "compression uncompressed:DERIVE:0:U compressed:DERIVE:0:U",
    "df used:GAUGE:0:1125899906842623 free:GAUGE:0:1125899906842623",
    "disk_io_time io_time:DERIVE:0:U weighted_io_time:DERIVE:0:U",
    "disk_latency read:GAUGE:0:U write:GAUGE:0:U",
    "disk_merged read:DERIVE:0:U write:DERIVE:0:U",
    "disk_octets read:DERIVE:0:U write:DERIVE:0:U",
    "disk_ops read:DERIVE:0:U write:DERIVE:0:U",
    "disk_time read:DERIVE:0:U write:DERIVE:0:U",
    "dns_octets queries:DERIVE:0:U responses:DERIVE:0:U",
    "domain_state state:GAUGE:0:U reason:GAUGE:0:U",
    "duration seconds:GAUGE:0:U",
    "ib_octets rx:DERIVE:0:U tx:DERIVE:0:U",
    "ib_packets rx:DERIVE:0:U tx:DERIVE:0:U",
    "if_dropped rx:DERIVE:0:U tx:DERIVE:0:U",
    "if_errors rx:DERIVE:0:U tx:DERIVE:0:U",
    "if_octets rx:DERIVE:0:U tx:DERIVE:0:U",
    "if_packets rx:DERIVE:0:U tx:DERIVE:0:U",
    "io_octets rx:DERIVE:0:U tx:DERIVE:0:U",
    "io_ops read:DERIVE:0:U write:DERIVE:0:U",
    "io_packets rx:DERIVE:0:U tx:DERIVE:0:U",
    "load shortterm:GAUGE:0:5000 midterm:GAUGE:0:5000 longterm:GAUGE:0:5000",
    "memcached_octets rx:DERIVE:0:U tx:DERIVE:0:U",
    "mysql_octets rx:DERIVE:0:U tx:DERIVE:0:U",
    "mysql_qcache hits:COUNTER:0:U inserts:COUNTER:0:U not_cached:COUNTER:0:U lowmem_prunes:COUNTER:0:U queries_in_cache:GAUGE:0:U",
    "mysql_threads running:GAUGE:0:U connected:GAUGE:0:U cached:GAUGE:0:U created:COUNTER:0:U",
    "node_octets rx:DERIVE:0:U tx:DERIVE:0:U",
    "ps_count processes:GAUGE:0:1000000 threads:GAUGE:0:1000000",
    "ps_cputime user:DERIVE:0:U syst:DERIVE:0:U",
    "ps_disk_octets read:DERIVE:0:U write:DERIVE:0:U",
    "ps_disk_ops read:DERIVE:0:U write:DERIVE:0:U",
    "ps_pagefaults minflt:DERIVE:0:U majflt:DERIVE:0:U",
    "serial_octets rx:DERIVE:0:U tx:DERIVE:0:U",
    "smart_attribute current:GAUGE:0:255 worst:GAUGE:0:255 threshold:GAUGE:0:255 pretty:GAUGE:0:U",
    "vf_broadcast vf_value:DERIVE:0:U",
    "vf_bytes vf_rx:DERIVE:0:U vf_tx:DERIVE:0:U",
    "vf_dropped vf_rx:DERIVE:0:U vf_tx:DERIVE:0:U",
    "vf_link_info vf_value:GAUGE:0:U",
    "vf_multicast vf_value:DERIVE:0:U",
    "vf_packets vf_rx:DERIVE:0:U vf_tx:DERIVE:0:U",
    "vmpage_faults minflt:DERIVE:0:U majflt:DERIVE:0:U",
    "vmpage_io in:DERIVE:0:U out:DERIVE:0:U",
    "voltage_threshold value:GAUGE:U:U threshold:GAUGE:U:U",
];
