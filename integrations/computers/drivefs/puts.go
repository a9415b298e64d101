package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"strconv"
	"syscall"
)

// put sends an entry once, and returns the item that the drive has now. A file whose item is in the trash becomes a new
// one, and one whose folder is in the trash becomes one in the drive's root, as one does whose place the drive does not
// allow: nothing that was written is lost.
func (j *journal) put(ctx context.Context, b *backend, e *entry) (item, error) {
	it, err := j.putOnce(ctx, b, e)
	if isStatus(err, 404) && e.ItemID != "" {
		if err = j.amend(e, func() { e.ItemID = "" }); err == nil {
			it, err = j.putOnce(ctx, b, e)
		}
	}
	if isStatus(err, 404) || isStatus(err, 422) {
		isGone := isStatus(err, 404)
		var root rootAnswer
		if b.askOnce(ctx, "GET", "/root", nil, nil, &root) != nil || isGone && root.Item.ID == e.ParentID {
			return it, err
		}
		err = j.amend(e, func() {
			e.ItemID, e.ParentID = "", root.Item.ID
			if !isGone {
				e.Name = fmt.Sprintf("unnamed file %016x", e.Number)
			}
		})
		if err == nil {
			it, err = j.putOnce(ctx, b, e)
		}
	}
	return it, err
}

func (j *journal) putOnce(ctx context.Context, b *backend, e *entry) (item, error) {
	file, err := os.Open(j.dataOf(e.Number))
	if err != nil {
		return item{}, err
	}
	defer file.Close()
	j.amending.Lock()
	fields := putFields{ParentID: e.ParentID, Name: e.Name, ItemID: e.ItemID, BaseVersion: e.BaseVersion,
		ModifiedAtMs: e.ModifiedAtMs, Executable: e.Executable, Session: e.Session, Size: e.Size}
	j.amending.Unlock()
	if e.Size > maxTogetherBytes {
		return b.putAlone(ctx, fields, io.LimitReader(file, e.Size))
	}
	content := make([]byte, e.Size)
	if _, err := io.ReadFull(file, content); err != nil {
		return item{}, err
	}
	return b.together.put(ctx, fields, content)
}

// putAlone sends a large content. Few of them are sent at once, because the worker keeps parts of each in its memory.
func (b *backend) putAlone(ctx context.Context, fields putFields, content io.Reader) (item, error) {
	select {
	case b.alone <- struct{}{}:
		defer func() { <-b.alone }()
	case <-ctx.Done():
		return item{}, context.Cause(ctx)
	}
	query := url.Values{
		"parentId": {fields.ParentID}, "name": {fields.Name}, "session": {fields.Session},
		"modifiedAtMs": {strconv.FormatInt(fields.ModifiedAtMs, 10)},
		"executable":   {strconv.FormatBool(fields.Executable)},
	}
	if fields.ItemID != "" {
		query.Set("itemId", fields.ItemID)
		query.Set("baseVersion", strconv.FormatInt(fields.BaseVersion, 10))
	}
	response, err := b.send(ctx, "PUT", "/files", query, content, fields.Size)
	if err != nil {
		return item{}, err
	}
	defer response.Body.Close()
	var answer itemAnswer
	err = json.NewDecoder(response.Body).Decode(&answer)
	io.Copy(io.Discard, response.Body)
	if err == nil && answer.Item.ID == "" {
		err = syscall.EIO
	}
	return answer.Item, err
}
