package main

import (
	"context"
	"sync"
	"syscall"
	"time"
)

// sendLater sends a file in the background.
func (d *drive) sendLater(n *node, pause time.Duration) {
	time.AfterFunc(pause, func() {
		if d.ended.Err() == nil {
			d.inTurn(d.ended, n, func() { d.sendNow(d.ended, n) })
		}
	})
}

// inTurn sends a few files at a time. A file that waits for its turn can be renamed and removed.
func (d *drive) inTurn(ctx context.Context, n *node, send func()) {
	d.mu.Lock()
	turns := d.smallSends
	if n.size > maxTogetherBytes {
		turns = d.sends
	}
	d.mu.Unlock()
	select {
	case turns <- struct{}{}:
		defer func() { <-turns }()
	case <-ctx.Done():
	}
	send() // in any case: it enters what was written
}

// sendPatiently returns when what was written before is on the drive, or patience is over. The file is not held between
// its attempts.
func (d *drive) sendPatiently(ctx context.Context, n *node) error {
	return patiently(ctx, func(ctx context.Context) error { return d.sendNow(ctx, n) })
}

// sendNow enters what was written, and tries once to send it. If that fails, it is tried again in the background.
func (d *drive) sendNow(ctx context.Context, n *node) error {
	d.mu.Lock()
	w := n.writing
	d.mu.Unlock()
	if w == nil {
		return nil
	}
	if err := d.commit(n, w); err != nil {
		return err
	}
	if err := w.sending.take(ctx); err != nil {
		return err
	}
	defer w.sending.give()
	return d.send(ctx, n, w)
}

// send sends the entries of a file until there is none. w.sending is held.
func (d *drive) send(ctx context.Context, n *node, w *writing) error {
	for {
		d.mu.Lock()
		e := w.entry
		if w.doubted != nil {
			e = w.doubted
		}
		w.current = e
		d.mu.Unlock()
		if e == nil {
			return nil
		}
		began := time.Now()
		it, err := d.outbox.journal.put(ctx, d.outbox.backend, e)
		if err != nil {
			d.failed(n, w, err)
			return err
		}
		if attributes := d.sent(n, w, e, it); attributes != nil {
			d.tellAttributes(ctx, n, attributes)
		}
		d.mu.Lock()
		w.notBefore = time.Now().Add(sendRest * time.Since(began))
		d.mu.Unlock()
		d.retireNow(n, w)
	}
}

func (d *drive) failed(n *node, w *writing, err error) {
	d.outbox.fail(err)
	d.mu.Lock()
	defer d.mu.Unlock()
	if w.entry == nil { // the file is gone
		d.outbox.journal.remove(w.current.Number)
	} else if isPassing(err) {
		w.current.MayBeSent = true
		if w.current != w.entry {
			w.doubted = w.current
		}
	} else if w.current != w.entry {
		w.doubted = nil
		d.outbox.journal.replace(w.current.Number, w.entry.Number)
	}
	w.current = nil
	if isStatus(err, 403) && w.entry != nil && w.writers == 0 && !w.isDirty {
		d.withdraw(n, w)
		return
	}
	w.nextPause = min(max(2*w.nextPause, time.Second), maxResendPause)
	if w.entry != nil {
		d.sendLater(n, w.nextPause)
	}
}

// sent makes the file the item that the drive has now. A content that was written meanwhile becomes its next version. It
// returns the attributes that were set meanwhile.
func (d *drive) sent(n *node, w *writing, e *entry, it item) (attributes map[string]any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	d.mu.Lock()
	w.current, w.doubted, w.nextPause = nil, nil, 0
	isGone := n.isGone
	later := w.entry
	if later == e {
		later, w.entry = nil, nil
	}
	if !isGone {
		d.become(n, it)
	}
	if later == nil && !isGone && !w.isDirty && e.Sha256 != "" && it.Sha256 != "" && it.Sha256 != e.Sha256 {
		// An earlier attempt had brought the content, and somebody has changed the file since.
		w.isOld, n.isStale = true, true
		n.size, n.modified, n.executable = it.Size, time.UnixMilli(it.ModifiedAtMs), it.Executable
		d.tellOfNode(n)
	}
	isDifferent := later == nil && !isGone && !w.isDirty &&
		(n.modified.UnixMilli() != it.ModifiedAtMs || n.executable != it.Executable)
	if isDifferent {
		attributes = map[string]any{"itemId": it.ID, "modifiedAtMs": n.modified.UnixMilli(), "executable": n.executable}
	}
	if d.freeBytes != nil {
		free := *d.freeBytes - e.Size
		d.freeBytes = &free
	}
	d.mu.Unlock()
	d.outbox.succeed()
	if isGone {
		// It was removed while it was sent.
		go d.trash(d.ended, it.ID, false, 0)
		d.outbox.journal.remove(e.Number)
		return nil
	}
	if later != nil {
		if d.outbox.journal.amend(later, func() { later.ItemID, later.BaseVersion = it.ID, it.Version }) != nil {
			return attributes // both are sent again after a crash, which changes nothing
		}
	}
	d.outbox.finish(e, it)
	return attributes
}

// become makes a file that was sent the item that the drive answered. After a conflict that is another one than before,
// beside it. mu is held.
func (d *drive) become(n *node, it item) {
	parent, name := n.parent, n.name
	isSame := n.item.ID == it.ID
	if !isSame {
		if n.item.ID != "" {
			delete(d.items, n.item.ID)
		}
		if other := d.items[it.ID]; other != nil && other != n {
			d.detach(other) // the changes were faster than the answer
			other.isGone = true
		}
		d.items[it.ID] = n
	}
	if isSame && it.Revision < n.item.Revision {
		// It was renamed meanwhile. Only the content is news.
		n.item.Version, n.item.Sha256, n.item.Size = it.Version, it.Sha256, it.Size
		return
	}
	n.item = it
	if parent == nil || it.ParentID == parent.container() && it.Name == name {
		return
	}
	d.tellOfName(parent, name)
	d.detach(n)
	parent.isLoaded = false // so that it shows what has the name on the drive
	if place := d.containers[it.ParentID]; place != nil {
		d.place(place, n, it.Name)
		d.tellOfName(place, it.Name)
	}
}

// syncAll returns when all that was written before is on the drive, or the time is over.
func (d *drive) syncAll(timeout time.Duration) {
	ctx, stop := context.WithTimeoutCause(d.ended, timeout, syscall.ETIMEDOUT)
	defer stop()
	d.mu.Lock()
	var files []*node
	for n := range d.unsent {
		w := n.writing
		// A program that has just emptied a file will write it.
		if w.isDirty && w.isEmptied && w.writers > 0 && n.item.ID != "" && timeout > 0 {
			continue
		}
		files = append(files, n)
	}
	d.mu.Unlock()
	var all sync.WaitGroup
	for _, n := range files {
		all.Go(func() { d.inTurn(ctx, n, func() { d.sendPatiently(ctx, n) }) })
	}
	all.Wait()
	d.outbox.settle(ctx)
}

// state is what the mount has not sent, with what an earlier one left.
func (d *drive) state() unsent {
	result := d.outbox.unsent()
	d.mu.Lock()
	defer d.mu.Unlock()
	for n := range d.unsent {
		result.add(n.size, n.writing.firstChange.UnixMilli())
	}
	return result
}
