package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"unsafe"
)

// Numbers of system calls that are the same on every machine, and their flags (linux/mount.h).
const (
	sysOpenTree     = 428
	sysMoveMount    = 429
	sysMountSetattr = 442

	openTreeClone       = 1
	moveMountEmptyPath  = 4
	atEmptyPath         = 0x1000
	atRecursive         = 0x8000
	mountAttrReadOnly   = 0x1
	mountAttrNosuid     = 0x2
	mountAttrNodev      = 0x4
	mountAttrIdmap      = 0x100000
	usersOfRootFolder   = 65_536
	withoutFolder       = ^uintptr(99) // AT_FDCWD, which is -100
	lowestFreePort      = "/proc/sys/net/ipv4/ip_unprivileged_port_start"
	mountCommand        = "mount"
	sealCommand         = "seal"
	pauseCommand        = "pause"
	usersCommand        = "users"
	mountMappedArgCount = 3
)

// mountMapped mounts a folder at another one, for root on a host. There, the files of the users 0 to 65,535 belong to
// the users `first` and following. Nothing on the disk changes.
func mountMapped(arguments []string) error {
	if len(arguments) != mountMappedArgCount {
		return errors.New("usage: mount FOLDER TARGET FIRST_USER")
	}
	first, err := strconv.Atoi(arguments[2])
	if err != nil {
		return err
	}
	users, err := userNamespace(first)
	if err != nil {
		return fmt.Errorf("users: %w", err)
	}
	defer users.Close()
	folder, target, itself := cText(arguments[0]), cText(arguments[1]), cText("")
	tree, _, failure := syscall.Syscall(sysOpenTree, withoutFolder, uintptr(unsafe.Pointer(folder)),
		openTreeClone|syscall.O_CLOEXEC)
	if failure != 0 {
		return fmt.Errorf("open_tree: %w", failure)
	}
	mapped := mountAttributes{set: mountAttrIdmap | mountAttrNosuid | mountAttrNodev, users: uint64(users.Fd())}
	if err := mapped.apply(tree, "", atEmptyPath); err != nil {
		return err
	}
	_, _, failure = syscall.Syscall6(sysMoveMount, tree, uintptr(unsafe.Pointer(itself)), withoutFolder,
		uintptr(unsafe.Pointer(target)), moveMountEmptyPath, 0)
	if failure != 0 {
		return fmt.Errorf("move_mount: %w", failure)
	}
	return nil
}

// seal opens the loopback of this network namespace, with the low ports for every user. It makes all mounts of this mount
// namespace read-only except the given ones, which are separated by commas. Then it becomes the command. bwrap follows
// links of the new root when it makes mount points, and a tenant can let them point to the host's files. So bwrap finds
// nothing there that it could change.
func seal(except string, command []string) error {
	if err := bringUpLoopback(); err != nil {
		return fmt.Errorf("the loopback: %w", err)
	}
	if err := os.WriteFile(lowestFreePort, []byte("0"), 0); err != nil {
		return err
	}
	readOnly := mountAttributes{set: mountAttrReadOnly}
	if err := readOnly.apply(withoutFolder, "/", atRecursive); err != nil {
		return err
	}
	writable := mountAttributes{clear: mountAttrReadOnly}
	for _, path := range strings.Split(except, ",") {
		if err := writable.apply(withoutFolder, path, atRecursive); err != nil {
			return err
		}
	}
	return syscall.Exec(command[0], command, os.Environ())
}

func bringUpLoopback() error {
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer syscall.Close(socket)
	request := struct {
		name  [syscall.IFNAMSIZ]byte
		flags uint16
		_     [22]byte
	}{flags: syscall.IFF_UP | syscall.IFF_RUNNING}
	copy(request.name[:], "lo")
	_, _, failure := syscall.Syscall(syscall.SYS_IOCTL, uintptr(socket), syscall.SIOCSIFFLAGS,
		uintptr(unsafe.Pointer(&request)))
	if failure != 0 {
		return failure
	}
	return nil
}

// What mount_setattr changes (struct mount_attr).
type mountAttributes struct{ set, clear, propagation, users uint64 }

// apply changes the mount at a path, which is relative to the folder.
func (a *mountAttributes) apply(folder uintptr, path string, flags uintptr) error {
	name := cText(path)
	_, _, failure := syscall.Syscall6(sysMountSetattr, folder, uintptr(unsafe.Pointer(name)), flags,
		uintptr(unsafe.Pointer(a)), unsafe.Sizeof(*a), 0)
	if failure != 0 {
		return fmt.Errorf("mount_setattr of %q: %w", path, failure)
	}
	return nil
}

// userNamespace opens a user namespace whose users are the ones from `first` on. It lives as long as the file is open.
func userNamespace(first int) (*os.File, error) {
	users := []syscall.SysProcIDMap{{ContainerID: 0, HostID: first, Size: usersOfRootFolder}}
	child := exec.Command("/proc/self/exe", pauseCommand)
	child.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER, UidMappings: users, GidMappings: users}
	ends, err := child.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := child.Start(); err != nil {
		return nil, err
	}
	defer child.Wait()
	defer ends.Close()
	return os.Open(fmt.Sprintf("/proc/%d/ns/user", child.Process.Pid))
}

// runAsUsers runs a command as the root of a user namespace, for root on a host. Its users 0 to 65,535 are the users
// `first` and following. The command has the descriptors 0 to 4, and ends with this process.
func runAsUsers(first string, command []string) error {
	number, err := strconv.Atoi(first)
	if err != nil {
		return err
	}
	users := []syscall.SysProcIDMap{{ContainerID: 0, HostID: number, Size: usersOfRootFolder}}
	child := exec.Command(command[0], command[1:]...)
	child.Stdin, child.Stdout, child.Stderr = os.Stdin, os.Stdout, os.Stderr
	child.ExtraFiles = []*os.File{os.NewFile(3, "filter"), os.NewFile(4, "credentials")}
	child.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:                 syscall.CLONE_NEWUSER,
		UidMappings:                users,
		GidMappings:                users,
		GidMappingsEnableSetgroups: true,
		Credential:                 &syscall.Credential{},
		Pdeathsig:                  syscall.SIGKILL,
	}
	// The kernel sends that signal when the thread ends.
	runtime.LockOSThread()
	err = child.Run()
	if failed := new(exec.ExitError); errors.As(err, &failed) {
		// It has complained itself.
		os.Exit(max(1, failed.ExitCode()))
	}
	return err
}

// pause waits until its standard input ends.
func pause() {
	syscall.Read(0, make([]byte, 1))
}

func cText(text string) *byte {
	bytes := append([]byte(text), 0)
	return &bytes[0]
}
