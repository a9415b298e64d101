package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// Names that are ignored stay on the computer's own disk: in the folder `localDir`, in a folder for each folder of the
// drive, by its id. The computer's programs can reach that folder too, and put links there. So it is only used through
// os.Root, from which no path leads out.

// openLocal opens the folder, and makes it if need be. No part of its path may be a link.
func (d *drive) openLocal() error {
	path := filepath.Clean(d.spec.LocalDir)
	if d.spec.LocalDir == "" {
		return nil
	}
	folder, err := openPlainFolder(path)
	if errors.Is(err, syscall.ENOENT) {
		var parent int
		if parent, err = openPlainFolder(filepath.Dir(path)); err != nil {
			return err
		}
		defer syscall.Close(parent)
		name := filepath.Base(path)
		if err = unix.Mkdirat(parent, name, 0o700); err == nil {
			unix.Fchownat(parent, name, int(d.spec.UID), int(d.spec.GID), unix.AT_SYMLINK_NOFOLLOW)
		}
		folder, err = openPlainFolder(path)
	}
	if err != nil {
		return err
	}
	defer syscall.Close(folder)
	var stat syscall.Stat_t
	if err := syscall.Fstat(folder, &stat); err != nil {
		return err
	}
	d.localUID, d.localGID = int(stat.Uid), int(stat.Gid)
	d.local, err = os.OpenRoot(fmt.Sprintf("/proc/self/fd/%d", folder))
	return err
}

func openPlainFolder(path string) (int, error) {
	return unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: unix.O_DIRECTORY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS})
}

func (d *drive) closeLocal() {
	if d.local != nil {
		d.local.Close()
	}
}

// localPath is a node's path in the local folder. mu is held.
func (d *drive) localPath(n *node) string {
	if !n.isLocal {
		return n.container()
	}
	if n.parent == nil {
		return "."
	}
	return d.localPath(n.parent) + "/" + n.name
}

func (d *drive) pathOf(parent *node, name string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.localPath(parent) + "/" + name
}

func fileMode(mode uint32) os.FileMode { return os.FileMode(mode & 0o777) }

func localStatus(err error) fuse.Status {
	var errno syscall.Errno
	switch {
	case err == nil:
		return fuse.OK
	case errors.As(err, &errno):
		return fuse.Status(errno)
	case errors.Is(err, fs.ErrNotExist):
		return fuse.ENOENT
	}
	return fuse.EPERM // a path that leads out
}

// newLocal makes the node of a local file, whose kind is found out when it is looked up. mu is held.
func (d *drive) newLocal() *node {
	n := d.newNode(0)
	n.isLocal = true
	n.children = map[string]*node{}
	return n
}

// localNames lists what a folder of the drive has locally.
func (d *drive) localNames(folder *node) []string {
	if d.local == nil {
		return nil
	}
	file, err := d.openLocalFolder(folder.container())
	if err != nil {
		return nil
	}
	defer file.Close()
	names, _ := file.Readdirnames(-1)
	return names
}

// openLocalFolder opens a folder. A pipe that a program has put there would be waited for.
func (d *drive) openLocalFolder(path string) (*os.File, error) {
	return d.local.OpenFile(path, syscall.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NONBLOCK, 0)
}

// staysLocal says whether a new name is ignored.
func (d *drive) staysLocal(parent *node, name string, isFolder bool) bool {
	return parent.isLocal || d.local != nil && d.isIgnored(parent, name, isFolder)
}
