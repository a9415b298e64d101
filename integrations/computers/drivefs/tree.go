package main

import (
	"syscall"
	"time"
)

// newNode makes a node without a place. mu is held.
func (d *drive) newNode(mode uint32) *node {
	d.lastNumber++
	n := &node{number: d.lastNumber, mode: mode, modified: time.Now()}
	if mode == syscall.S_IFDIR {
		n.children = map[string]*node{}
	}
	d.nodes[n.number] = n
	return n
}

// intern makes items share the strings that most of them have. mu is held.
func (it *item) intern(d *drive) {
	if parent := d.containers[it.ParentID]; parent != nil && parent.item.Kind != "app" {
		it.ParentID = parent.item.ID
	}
	if it.Kind == "file" {
		it.Kind = "file"
	}
}

// know makes the node of an item, or brings the one that is there up to date. mu is held.
func (d *drive) know(it item) *node {
	it.intern(d)
	n := d.items[it.ID]
	if n == nil || n.mode != modeOf(it.Kind) {
		n = d.newNode(modeOf(it.Kind))
		n.item, n.containerID = it, containerOf(&it)
		d.items[it.ID] = n
		if n.isFolder() {
			d.containers[n.container()] = n
		}
	} else if it.Revision < n.item.Revision {
		return n
	}
	d.update(n, it)
	return n
}

// update shows what the drive has now, except for what was written here and not sent. mu is held.
func (d *drive) update(n *node, it item) {
	isChanged := n.item.Version != it.Version || n.item.Sha256 != it.Sha256 || n.item.Target != it.Target
	isShownChanged := isChanged || n.item.ModifiedAtMs != it.ModifiedAtMs || n.item.Executable != it.Executable
	if n.writing.isUnsent() {
		// The version that was read stays the base of what is written, so that the drive sees the conflict.
		it.Version, it.Sha256, it.Size = n.item.Version, n.item.Sha256, n.item.Size
		n.item = it
		return
	}
	if isChanged && n.writing != nil {
		n.writing.isOld = true
	}
	n.item = it
	n.size = it.Size
	if n.mode == syscall.S_IFLNK {
		n.size = int64(len(it.Target))
	}
	n.executable = it.Executable
	if !n.isFolder() || it.ModifiedAtMs > n.modified.UnixMilli() || !n.isLoaded {
		n.modified = time.UnixMilli(it.ModifiedAtMs)
	}
	if isShownChanged && n.lookups > 0 {
		n.isStale = n.isStale || isChanged
		d.tellOfNode(n)
	}
}

// place gives a node a name in a folder. If the name is taken, the one that the computer wrote stays. mu is held.
func (d *drive) place(parent *node, n *node, name string) {
	if other := parent.children[keyOf(name)]; other != nil && other != n {
		if other.isLocal || other.item.ID == "" {
			n.parent, n.name = nil, name
			return
		}
		other.parent = nil
	}
	if n.parent != nil && (n.parent != parent || keyOf(n.name) != keyOf(name)) {
		d.detach(n)
	}
	n.parent, n.name = parent, name
	parent.children[keyOf(name)] = n
	parent.sorted = nil
}

// detach takes a node out of its folder. mu is held.
func (d *drive) detach(n *node) {
	if n.parent != nil && n.parent.children[keyOf(n.name)] == n {
		delete(n.parent.children, keyOf(n.name))
		n.parent.sorted = nil
	}
	n.parent = nil
}

// lose takes a node away for good. mu is held.
func (d *drive) lose(n *node) {
	if n.parent != nil {
		n.parent.modified = time.Now()
	}
	d.detach(n)
	n.isGone = true
	if n.item.ID != "" && d.items[n.item.ID] == n {
		delete(d.items, n.item.ID)
		if n.isFolder() {
			delete(d.containers, n.container())
		}
	}
	d.release(n)
}

// release frees a node that neither the kernel nor the tree needs. mu is held.
func (d *drive) release(n *node) {
	if n.lookups == 0 && n.opens == 0 && n.isGone && n.writing == nil {
		delete(d.nodes, n.number)
	}
}

func (d *drive) nodeOf(number uint64) *node {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.nodes[number]
}
