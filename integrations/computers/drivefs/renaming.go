package main

import (
	"context"
	"errors"
	"math"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
)

func (d *drive) Rename(cancel <-chan struct{}, in *fuse.RenameIn, oldName, newName string) fuse.Status {
	if in.Flags&^renameNoReplace != 0 {
		return fuse.EINVAL
	}
	from, status := d.folder(cancel, in.NodeId)
	if status != fuse.OK {
		return status
	}
	to, status := d.changeable(cancel, in.Newdir, newName)
	if status != fuse.OK {
		return status
	}
	source, target := d.child(from, oldName), d.child(to, newName)
	isLocal := from.isLocal || source != nil && source.isLocal
	if source == nil && !isLocal {
		return fuse.ENOENT
	}
	isFolder := source != nil && source.isFolder()
	staysLocal := to.isLocal || target != nil && target.isLocal || d.staysLocal(to, newName, isFolder)
	if isLocal != staysLocal {
		return fuse.EXDEV
	}
	if target != nil && target != source && in.Flags&renameNoReplace != 0 {
		return fuse.Status(syscall.EEXIST)
	}
	if isLocal {
		return d.renameLocal(from, source, oldName, to, target, newName)
	}
	if target == source {
		target = nil // another spelling of the same name
	}
	if target != nil {
		if status := d.replaceable(cancel, source, target); status != fuse.OK {
			return status
		}
	}
	ctx, stop := interruptible(cancel)
	defer stop()
	d.resolve(ctx, source)
	// A request with a file's old name has to end first. It may be a large file.
	give, err := d.holdSending(ctx, source, renamePatience)
	if err != nil {
		return d.status(err)
	}
	defer give()
	if target != nil {
		give, _ := d.holdSending(ctx, target, removalPatience)
		defer give()
	}
	if err := d.move(ctx, source, to, newName, target); err != nil {
		d.doubt(from, err)
		d.doubt(to, err)
		return d.status(err)
	}
	return fuse.OK
}

// replaceable says whether a rename may replace a target.
func (d *drive) replaceable(cancel <-chan struct{}, source, target *node) fuse.Status {
	switch {
	case source.isFolder() && !target.isFolder():
		return fuse.ENOTDIR
	case !source.isFolder() && target.isFolder():
		return fuse.EISDIR
	case target.isFolder():
		if _, status := d.folder(cancel, target.number); status != fuse.OK {
			return status
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		if len(target.children) > 0 {
			return fuse.Status(syscall.ENOTEMPTY)
		}
	}
	return fuse.OK
}

// move gives a node another name. A file that was just made takes the place of the target, so that its content becomes
// the target's next version. Otherwise the target goes to the trash.
func (d *drive) move(ctx context.Context, source, to *node, name string, target *node) error {
	d.mu.Lock()
	revision, id, targetID := int64(0), source.item.ID, ""
	if target != nil {
		targetID = target.item.ID
	}
	isTargetThere := targetID != ""
	maySave := id != "" && isTargetThere && source.isFile() && target.isFile()
	if maySave {
		d.removed[id] = math.MaxInt64 // the changes may say so before the answer
	}
	d.mu.Unlock()
	if isTargetThere {
		d.keepContent(ctx, target)
	}
	if isTargetThere && id == "" && !target.isFile() { // a link has no versions
		var err error
		if revision, err = d.trash(ctx, targetID, false, 0); err != nil {
			return err
		}
		isTargetThere = false
	}
	var answer itemAnswer
	if id != "" {
		body := map[string]any{"itemId": id, "parentId": to.container(), "name": name, "replace": isTargetThere}
		if err := d.outbox.backend.ask(ctx, "POST", "/move", nil, body, &answer); err != nil {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.expectAgain(source, id)
			return err
		}
		revision = answer.Item.Revision
	}
	d.mu.Lock()
	if source.parent != nil {
		source.parent.modified = time.Now()
	}
	// A file that was just made is the target's next version on the drive too.
	isSaved := maySave && answer.Item.ID == targetID
	if maySave && !isSaved {
		d.expectAgain(source, id)
	}
	if target != nil {
		replaced := target.item
		if isSaved {
			delete(d.items, id)
			d.removed[id] = revision
			// If the changes were faster, they have left out the version of a file that is not sent.
			if replaced.Revision <= answer.Item.Revision {
				replaced = answer.Item
			}
		}
		if id == "" && isTargetThere || isSaved {
			// The source becomes what the target was.
			delete(d.items, replaced.ID)
			target.item = item{}
			source.item = replaced
			d.items[replaced.ID] = source
		}
		d.gone(target, revision)
	}
	d.detach(source)
	if id != "" && !isSaved {
		answer.Item.Version, answer.Item.Sha256, answer.Item.Size =
			source.item.Version, source.item.Sha256, source.item.Size
		source.item = answer.Item
	}
	d.place(to, source, name)
	to.modified = time.Now()
	w := source.writing
	isWritten := w != nil && w.writers == 0
	d.mu.Unlock()
	if w == nil {
		return nil
	}
	if err := d.reenter(source, w); err != nil {
		return errors.Join(syscall.EIO, err)
	}
	if isWritten {
		d.sendLater(source, 0)
	}
	return nil
}

// expectAgain hears changes of an item again. Those that came meanwhile are seen by a new listing. mu is held.
func (d *drive) expectAgain(n *node, id string) {
	if d.removed[id] == 0 {
		return
	}
	delete(d.removed, id)
	if n.parent != nil {
		n.parent.isLoaded, n.parent.isStale = false, true
	}
}
