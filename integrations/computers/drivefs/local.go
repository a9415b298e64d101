package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

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
	file, err := d.local.Open(folder.container())
	if err != nil {
		return nil
	}
	defer file.Close()
	names, _ := file.Readdirnames(-1)
	return names
}

// staysLocal says whether a new name is ignored.
func (d *drive) staysLocal(parent *node, name string, isFolder bool) bool {
	return parent.isLocal || d.local != nil && d.isIgnored(parent, name, isFolder)
}

// makeLocal makes a local file, folder or link of the computer's user.
func (d *drive) makeLocal(parent *node, name string, make func(path string) error) (*node, fuse.Status) {
	if !parent.isLocal {
		if d.child(parent, name) != nil {
			return nil, fuse.Status(syscall.EEXIST)
		}
		if err := d.local.Mkdir(parent.container(), 0o755); err == nil {
			d.local.Lchown(parent.container(), d.localUID, d.localGID)
		}
	}
	path := d.pathOf(parent, name)
	if err := make(path); err != nil {
		return nil, localStatus(err)
	}
	d.local.Lchown(path, d.localUID, d.localGID)
	return d.findLocal(parent, name)
}

// findLocal returns the node of a local name, if there is one.
func (d *drive) findLocal(parent *node, name string) (*node, fuse.Status) {
	info, err := d.local.Lstat(d.pathOf(parent, name))
	d.mu.Lock()
	defer d.mu.Unlock()
	n := parent.children[keyOf(name)]
	if err != nil {
		if n != nil {
			d.lose(n)
		}
		return nil, localStatus(err)
	}
	mode := info.Sys().(*syscall.Stat_t).Mode & syscall.S_IFMT
	if n == nil || n.mode != 0 && n.mode != mode {
		if n != nil {
			d.lose(n)
		}
		n = d.newLocal()
		d.place(parent, n, name)
	}
	n.mode = mode
	return n, fuse.OK
}

// showAny answers the kernel with a node of either kind. mu is held.
func (d *drive) showAny(n *node, out *fuse.EntryOut) {
	d.show(n, out)
	if n.isLocal {
		d.localAttributes(n, &out.Attr)
	}
}

// localAttributes writes what the disk says of a local file. mu is held.
func (d *drive) localAttributes(n *node, out *fuse.Attr) fuse.Status {
	info, err := d.local.Lstat(d.localPath(n))
	if n.isGone || err != nil {
		if n.lastOpen == nil {
			return fuse.ENOENT
		}
		if info, err = n.lastOpen.Stat(); err != nil {
			return fuse.ENOENT
		}
	}
	out.FromStat(info.Sys().(*syscall.Stat_t))
	out.Ino, out.Owner, out.Mode = n.number, d.owner, out.Mode&^0o6000
	return fuse.OK
}

// openLocalFile opens a regular file. Anything else may wait for ever, or is a device.
func (d *drive) openLocalFile(n *node, flags uint32) (*os.File, error) {
	d.mu.Lock()
	path := d.localPath(n)
	d.mu.Unlock()
	access := int(flags) & (syscall.O_ACCMODE | syscall.O_TRUNC)
	file, err := d.local.OpenFile(path, access|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		file.Close()
		return nil, syscall.EPERM
	}
	d.mu.Lock()
	n.lastOpen = file
	d.mu.Unlock()
	return file, nil
}

func (d *drive) removeLocal(parent, n *node, name string) fuse.Status {
	if err := d.local.Remove(d.pathOf(parent, name)); err != nil {
		return localStatus(err)
	}
	if n != nil {
		d.mu.Lock()
		d.lose(n)
		d.mu.Unlock()
	}
	return fuse.OK
}

func (d *drive) renameLocal(from, source *node, oldName string, to, target *node, newName string) fuse.Status {
	if !to.isLocal {
		if err := d.local.Mkdir(to.container(), 0o755); err == nil {
			d.local.Lchown(to.container(), d.localUID, d.localGID)
		}
	}
	if err := d.local.Rename(d.pathOf(from, oldName), d.pathOf(to, newName)); err != nil {
		return localStatus(err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if target != nil && target != source {
		d.lose(target)
	}
	if source != nil {
		d.detach(source)
		d.place(to, source, newName)
	}
	return fuse.OK
}

// setLocal changes the attributes of a local file.
func (d *drive) setLocal(n *node, in *fuse.SetAttrIn) fuse.Status {
	d.mu.Lock()
	path := d.localPath(n)
	d.mu.Unlock()
	if mode, ok := in.GetMode(); ok && n.mode != syscall.S_IFLNK {
		if err := d.local.Chmod(path, fileMode(mode)); err != nil {
			return localStatus(err)
		}
	}
	if size, ok := in.GetSize(); ok {
		if err := d.truncateLocal(n, in, int64(size)); err != nil {
			return localStatus(err)
		}
	}
	modified, hasModified := in.GetMTime()
	accessed, hasAccessed := in.GetATime()
	if (hasModified || hasAccessed) && n.mode != syscall.S_IFLNK {
		return localStatus(d.local.Chtimes(path, timeOr(accessed, hasAccessed), timeOr(modified, hasModified)))
	}
	return fuse.OK
}

// timeOr returns the zero time, which changes nothing, for a time that is not given.
func timeOr(given time.Time, has bool) time.Time {
	if has {
		return given
	}
	return time.Time{}
}

func (d *drive) truncateLocal(n *node, in *fuse.SetAttrIn, size int64) error {
	if number, ok := in.GetFh(); ok {
		if h := d.handles.get(number); h != nil && h.local != nil {
			return h.local.Truncate(size)
		}
	}
	file, err := d.openLocalFile(n, syscall.O_WRONLY)
	if err != nil {
		return err
	}
	defer file.Close()
	return file.Truncate(size)
}
