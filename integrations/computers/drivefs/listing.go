package main

import (
	"context"
	"slices"
	"strings"
)

// children returns what a folder has, by name. mu is held.
func (n *node) list() []*node {
	if n.sorted == nil {
		n.sorted = make([]*node, 0, len(n.children))
		for _, child := range n.children {
			n.sorted = append(n.sorted, child)
		}
		slices.SortFunc(n.sorted, func(a, b *node) int { return strings.Compare(a.name, b.name) })
	}
	return n.sorted
}

// load lists a folder of the drive, if that was not done yet. Callers who want the same listing wait for it together.
func (d *drive) load(ctx context.Context, folder *node) error {
	for {
		d.mu.Lock()
		if folder.isLoaded || folder.isGone {
			d.mu.Unlock()
			return nil
		}
		other := folder.loading
		if other == nil {
			folder.loading = make(chan struct{})
			d.loadings++
			folder.during = nil
		}
		d.mu.Unlock()
		if other == nil {
			return d.listFolder(ctx, folder)
		}
		select {
		case <-other:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (d *drive) listFolder(ctx context.Context, folder *node) error {
	items, revision, err := d.outbox.backend.children(ctx, folder.container())
	locals := d.localNames(folder)
	d.mu.Lock()
	defer d.mu.Unlock()
	close(folder.loading)
	folder.loading = nil
	d.loadings--
	if err != nil {
		return err
	}
	old := folder.children
	folder.children, folder.sorted = make(map[string]*node, len(items)), nil
	for key, n := range old {
		if n.item.ID == "" && !n.isLocal || n.item.Revision > revision || n.writing.isUnsent() {
			folder.children[key] = n // made, moved or written here since
		} else {
			n.parent = nil
		}
	}
	for _, name := range locals {
		n := old[keyOf(name)]
		if n == nil || !n.isLocal {
			n = d.newLocal()
		}
		d.place(folder, n, name)
	}
	isAgain := folder.wasListed // so the kernel may know names that have changed since
	for _, it := range items {
		removed := d.removed[it.ID]
		if !isName(it.Name) || removed > revision && it.Revision <= removed {
			continue // it was removed after the listing
		}
		if known := d.items[it.ID]; known != nil && known.item.Revision > it.Revision && known.parent != folder {
			continue // moved away since
		}
		n := d.know(it)
		d.place(folder, n, it.Name)
		if isAgain && old[keyOf(it.Name)] != n {
			d.tellOfName(folder, it.Name)
		}
	}
	for key, n := range old {
		if isAgain && folder.children[key] == nil {
			d.tellOfName(folder, n.name)
		}
	}
	folder.isLoaded, folder.wasListed, folder.listed = true, true, revision
	during := folder.during
	folder.during = nil
	for _, it := range during {
		d.apply(it)
	}
	return nil
}
