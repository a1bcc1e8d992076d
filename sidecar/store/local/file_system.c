#include "store/local/file_system.h"

#include <linux/magic.h>
#include <stddef.h>

/* Not in every linux/magic.h. */
#define XFS_MAGIC 0x58465342UL
#define ZFS_MAGIC 0x2FC12FC1UL
#define CEPH_MAGIC 0x00C36400UL
#define CIFS_MAGIC 0xFF534D42UL
#define SMB2_MAGIC 0xFE534D42UL
#define GFS2_MAGIC 0x01161970UL
#define OCFS2_MAGIC 0x7461636FUL
#define LUSTRE_MAGIC 0x0BD00BD0UL
#define GPFS_MAGIC 0x47504653UL
#define VBOXSF_MAGIC 0x786F4256UL
#define VMHGFS_MAGIC 0xBACBACBCUL
#define KAFS_MAGIC 0x6B414653UL

static const char network[] = "a lock on a network file system is not freed with its process";
static const char outside[] = "its locks and syncs are made outside this kernel";
static const char volatile_[] = "it forgets the record at a reboot";
static const char special[] = "it keeps no files";

static const struct {
    unsigned long type;
    enum file_system_verdict verdict;
    const char *name;
    const char *why;
} file_systems[] = {
    {EXT4_SUPER_MAGIC, FILE_SYSTEM_GOOD, "ext", ""}, /* ext2 and ext3 share the number */
    {XFS_MAGIC, FILE_SYSTEM_GOOD, "xfs", ""},
    {BTRFS_SUPER_MAGIC, FILE_SYSTEM_GOOD, "btrfs", ""},
    {ZFS_MAGIC, FILE_SYSTEM_GOOD, "zfs", ""},
    {F2FS_SUPER_MAGIC, FILE_SYSTEM_GOOD, "f2fs", ""},
    {TMPFS_MAGIC, FILE_SYSTEM_DOUBTFUL, "tmpfs", volatile_},
    {OVERLAYFS_SUPER_MAGIC, FILE_SYSTEM_DOUBTFUL, "overlayfs",
     "two mounts of one overlay do not share locks, and a container's own goes with it"},
    {NFS_SUPER_MAGIC, FILE_SYSTEM_REFUSED, "nfs", network},
    {SMB_SUPER_MAGIC, FILE_SYSTEM_REFUSED, "smb", network},
    {CIFS_MAGIC, FILE_SYSTEM_REFUSED, "cifs", network},
    {SMB2_MAGIC, FILE_SYSTEM_REFUSED, "smb2", network},
    {CEPH_MAGIC, FILE_SYSTEM_REFUSED, "ceph", network},
    {GFS2_MAGIC, FILE_SYSTEM_REFUSED, "gfs2", network},
    {OCFS2_MAGIC, FILE_SYSTEM_REFUSED, "ocfs2", network},
    {LUSTRE_MAGIC, FILE_SYSTEM_REFUSED, "lustre", network},
    {GPFS_MAGIC, FILE_SYSTEM_REFUSED, "gpfs", network},
    {AFS_SUPER_MAGIC, FILE_SYSTEM_REFUSED, "afs", network},
    {KAFS_MAGIC, FILE_SYSTEM_REFUSED, "afs", network},
    {CODA_SUPER_MAGIC, FILE_SYSTEM_REFUSED, "coda", network},
    {FUSE_SUPER_MAGIC, FILE_SYSTEM_REFUSED, "fuse or virtiofs", outside},
    {V9FS_MAGIC, FILE_SYSTEM_REFUSED, "9p", outside},
    {VBOXSF_MAGIC, FILE_SYSTEM_REFUSED, "vboxsf", outside},
    {VMHGFS_MAGIC, FILE_SYSTEM_REFUSED, "vmhgfs", outside},
    {RAMFS_MAGIC, FILE_SYSTEM_REFUSED, "ramfs", volatile_},
    {PROC_SUPER_MAGIC, FILE_SYSTEM_REFUSED, "proc", special},
    {SYSFS_MAGIC, FILE_SYSTEM_REFUSED, "sysfs", special},
};

enum file_system_verdict file_system_judge(unsigned long type, const char **name,
                                           const char **why) {
    for (size_t i = 0; i < sizeof file_systems / sizeof file_systems[0]; i++) {
        /* statfs gives 32 bits, sign-extended on some machines. */
        if (file_systems[i].type == (type & 0xFFFFFFFFUL)) {
            *name = file_systems[i].name;
            *why = file_systems[i].why;
            return file_systems[i].verdict;
        }
    }
    *name = "unknown";
    *why = "nothing is known of its locks";
    return FILE_SYSTEM_REFUSED;
}
