package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
)

// A content that is being fetched.
type coming struct {
	done chan struct{}
	err  error
}

// get opens a content, which it fetches if it is not here. Callers who want the same content wait for one fetch.
func (c *cache) get(ctx context.Context, spaceID string, it item, fetch func(context.Context) (*http.Response, error),
) (*os.File, error) {
	path := spaceID + "/" + contentKey(&it)
	if !plainName.MatchString(spaceID) || !plainName.MatchString(contentKey(&it)) {
		return nil, syscall.EIO
	}
	for {
		if file := c.find(path, &it); file != nil {
			return file, nil
		}
		c.mu.Lock()
		other := c.coming[path]
		own := &coming{done: make(chan struct{})}
		if other == nil {
			c.coming[path] = own
		}
		c.mu.Unlock()
		if other != nil {
			select {
			case <-other.done:
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
			if other.err != nil && !errors.Is(other.err, syscall.EINTR) {
				return nil, other.err
			}
			continue
		}
		var file *os.File
		own.err = patiently(ctx, func(ctx context.Context) (err error) {
			file, err = c.fetch(ctx, path, &it, fetch)
			return err
		})
		c.mu.Lock()
		delete(c.coming, path)
		c.mu.Unlock()
		close(own.done)
		return file, own.err
	}
}

func (c *cache) fetch(ctx context.Context, path string, it *item, fetch func(context.Context) (*http.Response, error),
) (*os.File, error) {
	response, err := fetch(ctx)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	file, err := c.temporary(path)
	if err != nil {
		return nil, err
	}
	hash := sha256.New()
	size, err := io.Copy(io.MultiWriter(file, hash), io.LimitReader(response.Body, it.Size+1))
	if err == nil && !isContent(it, size, hash.Sum(nil)) {
		err = errWrongContent
	}
	if err == nil {
		err = os.Rename(file.Name(), filepath.Join(c.dir, path))
	}
	if err != nil {
		os.Remove(file.Name())
		file.Close()
		return nil, err
	}
	c.note(path, size, true)
	return file, nil
}

func (c *cache) temporary(path string) (*os.File, error) {
	folder := filepath.Join(c.dir, filepath.Dir(path))
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	return os.OpenFile(fmt.Sprintf("%s/.%016x", folder, randomNumber()), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
}

// take moves a file into the cache, for example one that was sent. It may stay away: the cache is no promise.
func (c *cache) take(spaceID string, it *item, from string) {
	path := spaceID + "/" + contentKey(it)
	if !plainName.MatchString(spaceID) || !plainName.MatchString(contentKey(it)) {
		return
	}
	if os.MkdirAll(filepath.Join(c.dir, spaceID), 0o700) == nil && os.Rename(from, filepath.Join(c.dir, path)) == nil {
		c.note(path, it.Size, false)
	}
}
