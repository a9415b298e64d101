package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"time"
)

// An answer of the worker that refuses a request.
type refusal struct {
	Status int    `json:"status"`
	Code   string `json:"code"`
}

func (r *refusal) Error() string { return fmt.Sprintf("%d %s", r.Status, r.Code) }

// isPassing says whether a repeated request may succeed.
func isPassing(err error) bool {
	var refused *refusal
	if errors.As(err, &refused) {
		return refused.Status == 503 || refused.Status == 429
	}
	var onDisk *fs.PathError
	return !errors.Is(err, errWrongContent) && !errors.As(err, &onDisk)
}

var errnoOfCode = map[string]syscall.Errno{
	"NAME_TAKEN": syscall.EEXIST, "NOT_EMPTY": syscall.ENOTEMPTY, "QUOTA_EXCEEDED": syscall.ENOSPC,
	"FILE_TOO_LARGE": syscall.EFBIG,
}

var errnoOfStatus = map[int]syscall.Errno{
	403: syscall.EACCES, 404: syscall.ENOENT, 409: syscall.EEXIST, 413: syscall.ENOSPC, 422: syscall.EINVAL,
}

// errnoOf returns what a program in the computer is told.
func errnoOf(err error) syscall.Errno {
	var refused *refusal
	if errors.As(err, &refused) {
		if errno, ok := errnoOfCode[refused.Code]; ok {
			return errno
		}
		if errno, ok := errnoOfStatus[refused.Status]; ok {
			return errno
		}
		return syscall.EIO
	}
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno
	}
	return syscall.EIO
}

func isStatus(err error, status int) bool {
	var refused *refusal
	return errors.As(err, &refused) && refused.Status == status
}

// interruptible returns a context that ends some time after the kernel says that the program got a signal.
func interruptible(cancel <-chan struct{}) (context.Context, func()) {
	ctx, stop := context.WithCancelCause(context.Background())
	go func() {
		select {
		case <-cancel:
			select {
			case <-time.After(interruptDelay):
				stop(syscall.EINTR)
			case <-ctx.Done():
			}
		case <-ctx.Done():
		}
	}()
	return ctx, func() { stop(nil) }
}

// patiently repeats a request until it is answered, refused, or patience is over.
func patiently(ctx context.Context, request func(context.Context) error) error {
	ctx, stop := context.WithTimeoutCause(ctx, patience, syscall.EIO)
	defer stop()
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, maxRetryPause) {
		err := request(ctx)
		if err == nil || ctx.Err() == nil && !isPassing(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}
