//! The name service of a static program. glibc loads a module for each word of /etc/nsswitch.conf, and a static program
//! can load only those of the very glibc that it was linked with: elsewhere a look-up fails or crashes. Files and DNS are
//! in glibc itself, and suffice.

/// Has a static program look up users and groups in files, and hosts in files and by DNS, whatever /etc/nsswitch.conf
/// says. Programs that are linked dynamically do as that file says. To be called before the first look-up.
pub fn need_no_modules() {
    #[cfg(all(target_env = "gnu", target_feature = "crt-static"))]
    built_in::configure();
}

#[cfg(all(target_env = "gnu", target_feature = "crt-static"))]
mod built_in {
    use std::ffi::CStr;

    /// Databases, and what glibc has built in for each since version 2.34.
    const SERVICES: [(&CStr, &CStr); 4] = [
        (c"passwd", c"files"),
        (c"group", c"files"),
        (c"initgroups", c"files"),
        (c"hosts", c"files dns"),
    ];

    #[allow(unsafe_code)]
    unsafe extern "C" {
        /// Part of glibc's <nss.h>; the crate `libc` does not declare it.
        fn __nss_configure_lookup(
            database: *const libc::c_char,
            services: *const libc::c_char,
        ) -> libc::c_int;
    }

    #[allow(unsafe_code)]
    pub(super) fn configure() {
        for (database, services) in SERVICES {
            // SAFETY: both texts end in NUL and live for ever, and no other thread looks anything up yet.
            let failed = unsafe { __nss_configure_lookup(database.as_ptr(), services.as_ptr()) };
            // A failure is want of memory; the look-up then asks nsswitch.conf.
            debug_assert_eq!(failed, 0);
        }
    }
}
