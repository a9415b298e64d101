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
	query := url.Values{
		"parentId": {e.ParentID}, "name": {e.Name}, "modifiedAtMs": {strconv.FormatInt(e.ModifiedAtMs, 10)},
		"executable": {strconv.FormatBool(e.Executable)}, "session": {e.Session},
	}
	if e.ItemID != "" {
		query.Set("itemId", e.ItemID)
		query.Set("baseVersion", strconv.FormatInt(e.BaseVersion, 10))
	}
	j.amending.Unlock()
	var body io.Reader
	if e.Size > 0 {
		body = io.LimitReader(file, e.Size)
	}
	response, err := b.send(ctx, "PUT", "/files", query, body, e.Size)
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
