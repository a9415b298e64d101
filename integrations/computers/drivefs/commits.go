package main

import (
	"time"
)

// commit makes an entry of what was written. When it returns, that outlives this process.
func (d *drive) commit(n *node, w *writing) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	d.mu.Lock()
	e := d.entryOf(n, w)
	isNeeded := w.isDirty && !n.isGone
	earlier := w.current
	if earlier == nil && w.entry != nil && w.entry.MayBeSent {
		earlier = w.entry
	}
	d.mu.Unlock()
	if !isNeeded {
		return nil
	}
	if earlier != nil { // after a crash it is sent again, before this one
		if err := d.outbox.journal.amend(earlier, func() { earlier.MayBeSent = true }); err != nil {
			return err
		}
	}
	if w.file == nil {
		number, file, err := d.outbox.journal.newData()
		if err != nil {
			return err
		}
		w.file, w.number = file, number
	}
	e.Number = w.number
	err := e.seal(w.file)
	if err == nil {
		err = d.outbox.journal.write(e)
	}
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	w.isEntered, w.isDirty = true, false
	old := w.entry
	w.entry = e
	switch {
	case old == nil || old == w.current:
	case old.MayBeSent:
		w.doubted = old
	default:
		d.outbox.journal.replace(old.Number, e.Number)
	}
	if n.isGone {
		d.forgetEntry(w)
	}
	return nil
}

// entryOf describes the present content. mu is held.
func (d *drive) entryOf(n *node, w *writing) *entry {
	e := &entry{ComputerID: d.outbox.computerID, SpaceID: d.spec.SpaceID, Key: w.key, ItemID: n.item.ID,
		BaseVersion: n.item.Version, ParentID: n.item.ParentID, Name: n.name,
		ModifiedAtMs: n.modified.UnixMilli(), Executable: n.executable, Session: w.session, Size: n.size}
	if n.parent != nil {
		e.ParentID = n.parent.container()
	}
	return e
}

// reenter writes the entry of a file again after it got another name, time or mode. w.sending is held.
func (d *drive) reenter(n *node, w *writing) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	d.mu.Lock()
	old := w.entry
	e := d.entryOf(n, w)
	d.mu.Unlock()
	if old == nil {
		return nil
	}
	e.Number, e.Size, e.Sha256, e.MayBeSent = old.Number, old.Size, old.Sha256, old.MayBeSent
	if err := d.outbox.journal.write(e); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	w.entry = e
	return nil
}

// forgetEntry takes back what was to be sent. mu is held.
func (d *drive) forgetEntry(w *writing) {
	for _, each := range w.takeEntries() {
		if each != w.current {
			d.outbox.journal.remove(each.Number)
		}
	}
}

// retire ends the state of a file that is neither open for writing nor unsent. w.mu and mu are held.
func (d *drive) retire(n *node, w *writing) {
	if w.isUnsent() && !n.isGone {
		return
	}
	delete(d.unsent, n)
	d.count(w, 0)
	if w.writers > 0 || n.writing != w || n.isGone && n.opens > 0 {
		return
	}
	d.dropFile(w)
	n.writing = nil
	d.release(n)
}

// watchWriters sends what programs write while they keep the file open.
func (d *drive) watchWriters() {
	for d.ended.Err() == nil {
		select {
		case <-d.ended.Done():
			return
		case <-time.After(watchPause):
		}
		d.mu.Lock()
		var due []*node
		for n := range d.unsent {
			w := n.writing
			isDue := w.isDirty && (time.Since(w.lastChange) > quietTime || time.Since(w.firstChange) > maxUnsentAge)
			if isDue && !w.isEmptied && !w.isWaiting && time.Now().After(w.notBefore) {
				w.isWaiting = true
				due = append(due, n)
			}
		}
		d.mu.Unlock()
		for _, n := range due {
			go d.sendOpen(n)
		}
	}
}

// sendOpen sends a file that is still being written, once.
func (d *drive) sendOpen(n *node) {
	d.mu.Lock()
	w := n.writing
	d.mu.Unlock()
	if w == nil {
		return
	}
	d.inTurn(d.ended, n, func() { d.sendNow(d.ended, n) })
	d.mu.Lock()
	defer d.mu.Unlock()
	w.isWaiting = false
}
