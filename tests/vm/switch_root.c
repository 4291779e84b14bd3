// pid 1 of the guest's initial file system: loads the modules that /modules lists, mounts the image of disk 0 with a writable layer in
// memory above it, and becomes its init.
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static void need(int failed, const char* what) {
  if (!failed) return;
  perror(what);
  for (;;) pause();  // the runner's deadline ends it, and prints this console
}

static void load_modules(void) {
  FILE* list = fopen("/modules", "r");
  need(list == NULL, "open /modules");
  for (char name[256]; fgets(name, sizeof name, list);) {
    name[strcspn(name, "\n")] = 0;
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    need(fd < 0 || syscall(SYS_finit_module, fd, "", 0) != 0, name);
    close(fd);
  }
  fclose(list);
}

int main(void) {
  static const char* const kFolders[] = {"/dev", "/lower", "/layer", "/root"};
  for (unsigned i = 0; i < sizeof kFolders / sizeof kFolders[0]; i++) mkdir(kFolders[i], 0755);
  mount("devtmpfs", "/dev", "devtmpfs", 0, NULL);
  int console = open("/dev/console", O_RDWR);
  for (int fd = 0; fd < 3; fd++) dup2(console, fd);
  load_modules();
  int mounted = -1;
  for (int i = 0; i < 500 && mounted != 0; i++) {  // the disk comes a moment after its driver
    mounted = mount("/dev/vda", "/lower", "squashfs", MS_RDONLY, NULL);
    if (mounted != 0) usleep(10000);
  }
  need(mounted != 0, "mount /dev/vda");
  need(mount("tmpfs", "/layer", "tmpfs", 0, "size=50%") != 0, "mount tmpfs");
  mkdir("/layer/upper", 0755);
  mkdir("/layer/work", 0755);
  need(mount("overlay", "/root", "overlay", 0, "lowerdir=/lower,upperdir=/layer/upper,workdir=/layer/work") != 0, "mount overlay");
  need(mount("/dev", "/root/dev", NULL, MS_MOVE, NULL) != 0, "move /dev");
  need(chdir("/root") != 0 || mount(".", "/", NULL, MS_MOVE, NULL) != 0 || chroot(".") != 0 || chdir("/") != 0, "switch root");
  execl("/sbin/init", "init", (char*)NULL);
  need(1, "exec /sbin/init");
}
