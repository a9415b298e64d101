package main

import (
	"context"
	"net/url"
	"slices"
	"strconv"
	"time"
)

const (
	changesWait    = 25 * time.Second
	changesPause   = 250 * time.Millisecond
	maxChangesWait = 2 * time.Second
	// With more, listings are forgotten that were not used for this time and of which the kernel knows nothing.
	maxNodes   = 200_000
	unusedTime = 10 * time.Minute
)

type changesAnswer struct {
	Revision  int64  `json:"revision"`
	Access    string `json:"access"`
	FreeBytes *int64 `json:"freeBytes"`
	Reset     bool   `json:"reset"`
	Items     []item `json:"items"`
}

// follow brings what changes on the drive to the tree and to the kernel, until the context ends.
func (d *drive) follow(ctx context.Context) {
	pause := changesPause
	for ctx.Err() == nil {
		d.mu.Lock()
		query := url.Values{"after": {strconv.FormatInt(d.revision, 10)},
			"waitMs": {strconv.FormatInt(changesWait.Milliseconds(), 10)}}
		d.mu.Unlock()
		var answer changesAnswer
		if err := d.outbox.backend.askOnce(ctx, "GET", "/changes", query, nil, &answer); err != nil {
			if isStatus(err, 403) || isStatus(err, 404) {
				d.allowNothing() // there is no such computer any more
			}
			select {
			case <-ctx.Done():
			case <-time.After(pause):
			}
			pause = min(2*pause, maxChangesWait)
			continue
		}
		pause = changesPause
		d.mu.Lock()
		d.take(&answer)
		d.mu.Unlock()
	}
}

// allowNothing ends all access, until the worker says otherwise.
func (d *drive) allowNothing() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.access != "none" {
		d.access = "none"
		d.tellOfAll()
	}
}

// take applies the changes of one answer. mu is held.
func (d *drive) take(answer *changesAnswer) {
	d.freeBytes = answer.FreeBytes
	if d.access != answer.Access {
		d.access = answer.Access
		d.tellOfAll()
	}
	if answer.Reset {
		for _, n := range d.containers {
			n.isLoaded, n.isStale, n.sorted = false, true, nil
		}
		clear(d.removed)
		d.tellOfAll()
	}
	for _, it := range answer.Items {
		d.apply(it)
	}
	d.revision = answer.Revision
	if len(d.nodes) > maxNodes {
		d.trim()
	}
}

// trim forgets listings. They are listed again when they are needed. mu is held.
func (d *drive) trim() {
	for _, folder := range d.containers {
		if !folder.isLoaded || folder.loading != nil || time.Since(folder.used) < unusedTime || !folder.canForget() {
			continue
		}
		for _, child := range folder.children {
			delete(d.nodes, child.number)
			delete(d.items, child.item.ID)
			if child.isFolder() {
				delete(d.containers, child.container())
			}
		}
		folder.children, folder.sorted, folder.isLoaded = map[string]*node{}, nil, false
	}
}

func (n *node) canForget() bool {
	for _, child := range n.children {
		if child.lookups > 0 || child.opens > 0 || child.writing != nil || child.isLocal || child.isLoaded {
			return false
		}
	}
	return len(n.children) > 0
}

// apply brings one changed item to the tree. What is known to be newer stays. mu is held.
func (d *drive) apply(it item) {
	n := d.items[it.ID]
	if d.removed[it.ID] {
		// Removed here. An older change may still come, but no later one before this.
		if !it.Live {
			delete(d.removed, it.ID)
			for _, folder := range d.containers {
				folder.during = slices.DeleteFunc(folder.during, func(each item) bool { return each.ID == it.ID })
			}
		}
		return
	}
	if n != nil && (it.Revision <= n.item.Revision || n == d.root) {
		return
	}
	if !it.Live {
		if n != nil && !n.writing.isUnsent() { // what was written here becomes a new file
			d.tellOfName(n.parent, n.name)
			d.lose(n)
		}
		return
	}
	parent := d.containers[it.ParentID]
	if parent != nil && parent.loading != nil {
		parent.during = append(parent.during, it)
	}
	isShown := parent != nil && parent.isLoaded && isName(it.Name)
	if n == nil {
		if isShown {
			if other := parent.children[keyOf(it.Name)]; other != nil && other.item.ID == "" && !other.isLocal {
				return // probably our own, whose answer is still coming; if not, the answer says that there is a conflict
			}
		}
		if isShown && it.Revision > parent.listed {
			d.place(parent, d.know(it), it.Name)
		}
		d.tellOfName(parent, it.Name)
		return
	}
	d.update(n, it)
	if n.parent == parent && n.name == it.Name {
		return
	}
	d.tellOfName(n.parent, n.name)
	d.detach(n)
	if isShown {
		d.place(parent, n, it.Name)
	}
	d.tellOfName(parent, it.Name)
}

// What the kernel shall no longer know: the content and attributes of a node, or one name in a folder.
type note struct {
	number uint64
	name   string
}

// tellOfNode makes the kernel ask again for a node. mu is held.
func (d *drive) tellOfNode(n *node) {
	if n.lookups > 0 || n == d.root {
		d.notes.add(note{number: n.number})
	}
}

// tellOfName makes the kernel ask again for a name, and list its folder again. mu is held.
func (d *drive) tellOfName(parent *node, name string) {
	if parent == nil || !isName(name) {
		return
	}
	parent.isStale = true
	parent.modified = time.Now()
	if parent.lookups > 0 || parent == d.root {
		d.notes.add(note{parent.number, name})
		d.notes.add(note{number: parent.number})
	}
}

// tellOfAll makes the kernel forget everything. mu is held.
func (d *drive) tellOfAll() {
	for _, n := range d.nodes {
		if n.lookups == 0 && n != d.root {
			continue
		}
		n.isStale = true
		d.notes.add(note{number: n.number})
		for _, child := range n.children {
			if child.lookups > 0 {
				d.notes.add(note{n.number, child.name})
			}
		}
	}
}
