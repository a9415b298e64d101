// The drive of computers: it shows each computer its space's drive as files, by FUSE. It runs outside of the sandboxes,
// keeps what was read and what was written on the host's disk, and asks the host's worker for everything else.
package main

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

const (
	defaultCacheBytes = 2 << 30
	lastSync          = 5 * time.Second
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	backendSocket := flag.String("backend", "", "the socket of the worker")
	controlSocket := flag.String("control", "", "the socket by which the worker controls this program")
	cacheDir := flag.String("cache", "", "a folder for contents that were read")
	stageDir := flag.String("stage", "", "a folder for contents that are not sent yet")
	cacheBytes := flag.Int64("cache-bytes", defaultCacheBytes, "the size of the cache")
	flag.DurationVar(&patience, "patience", patience, "how long a request is repeated without an answer")
	flag.DurationVar(&asidePatience, "aside-after", asidePatience,
		"how long files wait that the person may not send any more, before they are put into the home")
	flag.Parse()
	if *backendSocket == "" || *controlSocket == "" || *cacheDir == "" || *stageDir == "" {
		return fmt.Errorf("usage: atrium-drivefs --backend SOCK --control SOCK --cache DIR --stage DIR")
	}
	syscall.Umask(0)
	raiseLimits()
	signal.Ignore(syscall.SIGPIPE, syscall.SIGHUP) // it outlives who has started it
	c, err := openCache(*cacheDir, *cacheBytes)
	if err != nil {
		return err
	}
	m, err := newDaemon(*backendSocket, *stageDir, c)
	if err != nil {
		return err
	}
	listener, err := listen(*controlSocket)
	if err != nil {
		return err
	}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM, syscall.SIGINT)
	server := &http.Server{Handler: m.routes()}
	go server.Serve(listener)
	<-ended
	server.Close()
	m.unmountAll(lastSync)
	return nil
}
