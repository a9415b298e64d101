package main

import (
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// An entry of a folder as an open handle lists it.
type dirEntry struct {
	name string
	mode uint32
	node *node // nil: local, and not looked up
}

func (d *drive) OpenDir(cancel <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	if refused := d.refuse(false); refused != fuse.OK {
		return refused
	}
	if d.refuseHandle() {
		return fuse.Status(syscall.ENFILE)
	}
	n, status := d.folder(cancel, in.NodeId)
	if status != fuse.OK {
		return status
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if !n.isLocal {
		out.OpenFlags |= fuse.FOPEN_CACHE_DIR
		if !n.isStale {
			out.OpenFlags |= fuse.FOPEN_KEEP_CACHE
		}
		n.isStale = false
	}
	n.opens++
	out.Fh = d.handles.add(&handle{node: n})
	return fuse.OK
}

func (d *drive) ReleaseDir(in *fuse.ReleaseIn) {
	if h := d.handles.remove(in.Fh); h != nil {
		d.mu.Lock()
		defer d.mu.Unlock()
		h.node.opens--
		d.release(h.node)
	}
}

func (d *drive) ReadDir(_ <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	return d.readDir(in, func(each dirEntry) bool {
		return out.AddDirEntry(fuse.DirEntry{Name: each.name, Mode: each.mode, Ino: each.number()})
	})
}

func (d *drive) ReadDirPlus(_ <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	hasLeft := d.outbox.hasLeft() // then the kernel looks each name up, which waits for those
	return d.readDir(in, func(each dirEntry) bool {
		entry := out.AddDirLookupEntry(fuse.DirEntry{Name: each.name, Mode: each.mode, Ino: each.number()})
		if entry == nil {
			return false
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		if n := each.node; !hasLeft && n != nil && !n.isLocal && !n.isGone && n.name == each.name {
			d.show(n, entry)
		}
		return true
	})
}

func (e dirEntry) number() uint64 {
	if e.node == nil {
		return fuse.FUSE_UNKNOWN_INO
	}
	return e.node.number
}

func (d *drive) readDir(in *fuse.ReadIn, add func(dirEntry) bool) fuse.Status {
	if refused := d.refuse(false); refused != fuse.OK {
		return refused
	}
	h := d.handles.get(in.Fh)
	if h == nil {
		return fuse.EBADF
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.entries == nil || in.Offset == 0 {
		entries, err := d.entriesOf(h.node)
		if err != nil {
			return localStatus(err)
		}
		h.entries = entries
	}
	for at := in.Offset; at < uint64(len(h.entries)); at++ {
		if !add(h.entries[at]) {
			break
		}
	}
	return fuse.OK
}

// entriesOf lists a folder, always in the same order: the kernel's cache may have its first part.
func (d *drive) entriesOf(n *node) ([]dirEntry, error) {
	entries := []dirEntry{{name: ".", mode: syscall.S_IFDIR}, {name: "..", mode: syscall.S_IFDIR}}
	d.mu.Lock()
	path := d.localPath(n)
	if !n.isLocal {
		defer d.mu.Unlock()
		for _, child := range n.list() {
			entries = append(entries, dirEntry{child.name, child.mode, child})
		}
		return entries, nil
	}
	d.mu.Unlock()
	folder, err := d.openLocalFolder(path)
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	found, err := folder.ReadDir(-1)
	for _, each := range found {
		entries = append(entries, dirEntry{name: each.Name(), mode: typeOf(each)})
	}
	slices.SortFunc(entries[2:], func(a, b dirEntry) int { return strings.Compare(a.name, b.name) })
	return entries, err
}

func typeOf(each os.DirEntry) uint32 {
	switch {
	case each.IsDir():
		return syscall.S_IFDIR
	case each.Type().IsRegular():
		return syscall.S_IFREG
	}
	return syscall.S_IFLNK
}
