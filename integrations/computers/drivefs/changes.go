package main

import (
	"context"
	"maps"
	"net/url"
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
	// Another one than before says that the revisions count anew, as those of a restored database do.
	Epoch     string `json:"epoch"`
	Revision  int64  `json:"revision"`
	Access    string `json:"access"`
	FreeBytes *int64 `json:"freeBytes"`
	Reset     bool   `json:"reset"`
	Items     []item `json:"items"`
}

// follow brings what changes on the drive to the tree and to the kernel, until the context ends. It asks again when an
// answer has come, so answers are applied in the order of the changes.
func (d *drive) follow(ctx context.Context) {
	pause := changesPause
	for ctx.Err() == nil {
		err := d.followOnce(ctx)
		if err == nil {
			pause = changesPause
			continue
		}
		if isStatus(err, 403) || isStatus(err, 404) {
			d.allowNothing() // there is no such computer any more
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		pause = min(2*pause, maxChangesWait)
	}
}

// followOnce applies the next changes, for which it waits unless somebody wants to know now.
func (d *drive) followOnce(ctx context.Context) error {
	asking, stop := context.WithCancel(ctx)
	defer stop()
	d.mu.Lock()
	callers := d.refreshers
	d.refreshers = nil
	wait := changesWait
	d.stopWaiting = stop
	if len(callers) > 0 {
		wait, d.stopWaiting = 0, nil
	}
	query := url.Values{"after": {strconv.FormatInt(d.revision, 10)}, "epoch": {d.epoch},
		"waitMs": {strconv.FormatInt(wait.Milliseconds(), 10)}}
	d.mu.Unlock()
	var answer changesAnswer
	err := d.outbox.backend.askOnce(asking, "GET", "/changes", query, nil, &answer)
	d.mu.Lock()
	d.stopWaiting = nil
	if err == nil {
		d.take(&answer)
	}
	isWanted := len(d.refreshers) > 0
	d.mu.Unlock()
	for _, done := range callers {
		d.notes.add(note{done: done})
	}
	if err != nil && isWanted && asking.Err() != nil {
		return nil
	}
	return err
}

// refresh returns when the kernel knows what had changed before, or the context ends.
func (d *drive) refresh(ctx context.Context) {
	done := make(chan struct{})
	d.mu.Lock()
	d.refreshers = append(d.refreshers, done)
	if d.stopWaiting != nil {
		d.stopWaiting()
	}
	d.mu.Unlock()
	select {
	case <-done:
	case <-ctx.Done():
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
		for _, n := range d.items {
			n.item.Revision = 0 // all that is listed from now on is as new, also after a restore of the database
		}
		for _, n := range d.containers {
			n.isLoaded, n.isStale, n.sorted = false, true, nil
		}
		clear(d.removed)
		d.tellOfAll()
	}
	for _, it := range answer.Items {
		d.apply(it)
	}
	d.revision, d.epoch = answer.Revision, answer.Epoch
	if d.loadings == 0 { // a listing from before a removal may still come
		maps.DeleteFunc(d.removed, func(_ string, revision int64) bool { return revision <= answer.Revision })
	}
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
	if removed, ok := d.removed[it.ID]; ok && it.Revision <= removed {
		return // an older change, or the removal
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
