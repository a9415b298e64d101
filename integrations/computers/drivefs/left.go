package main

import (
	"context"
	"maps"
	"slices"
	"syscall"
	"time"
)

// attach makes entries that are left known to a mount, which has the home. nil: there is none any more.
func (o *outbox) attach(d *drive) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.mounted, o.aside = d, aside{}
	if d != nil {
		o.aside.path = d.spec.AsideDir
	}
}

func (o *outbox) hasLeft() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.left) > 0
}

// drop takes an entry out of those that are left. mu is held.
func (o *outbox) drop(e *entry) {
	o.left = slices.DeleteFunc(o.left, func(each *entry) bool { return each == e })
	o.tell()
}

// tell wakes those who wait for an entry. mu is held.
func (o *outbox) tell() {
	close(o.isNews)
	o.isNews = make(chan struct{})
}

// waitFor waits while an entry is on its way, until it is sent or refused, or the context ends.
func (o *outbox) waitFor(ctx context.Context, isWanted func(*entry) bool) error {
	for {
		o.mu.Lock()
		o.journal.amending.Lock()
		isComing := slices.ContainsFunc(o.left, func(e *entry) bool { return e.refusedAt.IsZero() && isWanted(e) })
		o.journal.amending.Unlock()
		isNews := o.isNews
		o.mu.Unlock()
		if !isComing {
			return nil
		}
		select {
		case <-isNews:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// waitForLeft waits for what an earlier process or mount has left of a file. Otherwise a program that appends to it would
// begin where the drive's older content ends.
func (d *drive) waitForLeft(cancel <-chan struct{}, parent *node, name string) error {
	if parent.isLocal || !d.outbox.hasLeft() {
		return nil
	}
	d.mu.Lock()
	id, container := "", parent.container()
	if n := parent.children[keyOf(name)]; n != nil {
		id = n.item.ID
	}
	d.mu.Unlock()
	ctx, stop := interruptible(cancel)
	defer stop()
	ctx, end := context.WithTimeoutCause(ctx, patience, syscall.EIO)
	defer end()
	return d.outbox.waitFor(ctx, func(e *entry) bool {
		if e.ItemID != "" {
			return e.ItemID == id
		}
		return e.ParentID == container && keyOf(e.Name) == keyOf(name)
	})
}

// hear notes an item that the outbox has sent.
func (d *drive) hear(it item) {
	it.Live = true
	d.mu.Lock()
	defer d.mu.Unlock()
	d.apply(it)
}

// withdraw shows what the drive has again of a file that the computer may not send any more. Its content is left in the
// outbox. mu is held.
func (d *drive) withdraw(n *node, w *writing) {
	entries := w.takeEntries()
	delete(d.unsent, n)
	d.count(w, 0)
	for _, each := range entries {
		each.refusedAt = time.Now()
	}
	go d.outbox.leave(entries) // it may not be called with this lock
	if n.item.ID == "" {
		d.tellOfName(n.parent, n.name)
		d.lose(n)
	} else {
		w.isOld = true
		n.size, n.modified, n.executable = n.item.Size, time.UnixMilli(n.item.ModifiedAtMs), n.item.Executable
		n.isStale = true
		d.tellOfNode(n)
	}
	go d.retireNow(n, w)
}

// takeEntries returns what is to be sent, the oldest first, and forgets it here. mu is held.
func (w *writing) takeEntries() (entries []*entry) {
	for _, each := range []*entry{w.doubted, w.entry} {
		if each != nil {
			entries = append(entries, each)
		}
	}
	w.doubted, w.entry = nil, nil
	return entries
}

// leaveUnsent gives the entries that were not sent to the outbox, which outlives the mount.
func (d *drive) leaveUnsent() {
	d.mu.Lock()
	files := slices.Collect(maps.Keys(d.unsent))
	d.mu.Unlock()
	for _, n := range files {
		d.mu.Lock()
		w := n.writing
		d.mu.Unlock()
		if w == nil || d.commit(n, w) != nil {
			continue
		}
		w.sending.take(context.Background()) // a request that was going on ends now
		d.mu.Lock()
		entries := w.takeEntries()
		d.mu.Unlock()
		w.sending.give()
		d.outbox.leave(entries)
	}
}
