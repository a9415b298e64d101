package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// While a file is open, what was written is sent after this quiet time, and at the latest after the other.
	quietTime    = time.Second
	maxUnsentAge = 5 * time.Second
	watchPause   = 250 * time.Millisecond
	// So much longer than a file took to send, it rests before it is sent again while it is open: each time all of it is.
	sendRest = 4
	// A new file is not sent at once: programs write a temporary name and rename it, or delete it.
	newFileDelay = 150 * time.Millisecond
)

// writing is a file that is open for writing, or whose content the drive does not have yet.
type writing struct {
	// Held while the content is sent, and while the file is renamed or removed.
	sending lock

	// Guards the file and its number. Whoever reads or writes it holds it for reading. Taken before the drive's mu.
	mu     sync.RWMutex
	file   *os.File // nil: as the drive has it
	number uint64
	// The file is the data of an entry, so it may not change any more.
	isEntered bool

	// The rest is guarded by the drive's mu.
	key     string
	session string
	writers int
	// Changed since the last entry.
	isDirty bool
	// It was only emptied, and will probably be written.
	isEmptied               bool
	firstChange, lastChange time.Time
	// The content that the drive shall get. A later one replaces it.
	entry *entry
	// The one that is being sent now.
	current *entry
	// An earlier one whose request has failed. The drive may have it, so it is sent again before entry.
	doubted *entry
	// The drive has a newer content than file.
	isOld     bool
	counted   int64
	nextPause time.Duration
	// A file that is being written is not sent again before.
	notBefore time.Time
	isWaiting bool // for its turn to be sent while it is open
}

func (w *writing) isUnsent() bool { return w != nil && (w.isDirty || w.entry != nil) }

// A lock that can be given up waiting for.
type lock chan struct{}

func (l lock) take(ctx context.Context) error {
	select {
	case l <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (l lock) give() { <-l }

// writingOf returns the state of a file that is about to be written. mu is held.
func (d *drive) writingOf(n *node) *writing {
	if n.writing == nil {
		n.writing = &writing{sending: make(lock, 1), key: fmt.Sprintf("%016x", randomNumber())}
	}
	if n.writing.writers == 0 {
		n.writing.session = fmt.Sprintf("%016x", randomNumber())
	}
	return n.writing
}

// change notes that a file has another content or size. mu is held.
func (d *drive) change(n *node, w *writing, size int64) {
	now := time.Now()
	if !w.isDirty {
		w.firstChange = now
	}
	w.isDirty, w.isOld, w.lastChange, n.modified, n.size = true, false, now, now, size
	if !n.isGone {
		d.unsent[n] = true
		d.count(w, size)
	}
}

// count keeps the sum of what the drive does not count yet. mu is held.
func (d *drive) count(w *writing, size int64) {
	d.unsentBytes += size - w.counted
	w.counted = size
}

// allow refuses a size that has no room on the drive. mu is held.
func (d *drive) allow(w *writing, size int64) error {
	if d.maxFile > 0 && size > d.maxFile {
		return syscall.EFBIG
	}
	if size > w.counted && !d.outbox.journal.hasRoom(size-w.counted) {
		return syscall.ENOSPC
	}
	if d.freeBytes != nil && size > w.counted && d.unsentBytes+size-w.counted > *d.freeBytes {
		return syscall.ENOSPC
	}
	return nil
}

// prepare makes the file one that may change. It has the present content, unless that will not be needed. w.mu is held.
func (d *drive) prepare(ctx context.Context, n *node, w *writing, keep bool) error {
	d.mu.Lock()
	isOld, it, isNew, kept := w.isOld, n.item, n.item.ID == "", n.kept
	d.mu.Unlock()
	if w.file != nil && !w.isEntered && !isOld {
		return nil
	}
	var from *os.File
	if keep && w.file != nil && !isOld {
		from = w.file
	} else if keep && kept != nil {
		from = kept.file
	} else if keep && !isNew && it.Size > 0 {
		file, err := d.content(ctx, it)
		if err != nil {
			return err
		}
		defer file.Close()
		from = file
	}
	if from != nil && !d.outbox.journal.hasRoom(it.Size) {
		return syscall.ENOSPC
	}
	number, file, err := d.outbox.journal.newData()
	if err == nil && from != nil {
		err = clone(file, from)
	}
	if err != nil {
		if file != nil {
			file.Close()
			d.outbox.journal.remove(number)
		}
		return err
	}
	d.dropFile(w)
	w.file, w.number, w.isEntered = file, number, false
	return nil
}

// dropFile closes the file, and removes it unless an entry needs it. w.mu is held.
func (d *drive) dropFile(w *writing) {
	if w.file == nil {
		return
	}
	w.file.Close()
	if !w.isEntered {
		d.outbox.journal.remove(w.number)
	}
	w.file = nil
}

// clone copies a file: without copying bytes, where the file system can share them.
func clone(to, from *os.File) error {
	if unix.IoctlFileClone(int(to.Fd()), int(from.Fd())) == nil {
		return nil
	}
	source, err := os.Open(fmt.Sprintf("/proc/self/fd/%d", from.Fd())) // has an offset of its own
	if err != nil {
		return err
	}
	defer source.Close()
	_, err = io.Copy(to, source)
	return err
}
