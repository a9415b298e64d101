package main

import (
	"os"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
)

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
