// The embedded object store serves S3 from a folder, with versitygw's gateway and layout of files. It adds one thing:
// it answers a request only once the changes are on the disk.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/embedgw"
)

const (
	// Defaults of versitygw's command line. Its library has none.
	maxConnections = 250_000
	maxRequests    = 100_000
	maxParts       = 10_000
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	address := flag.String("address", "127.0.0.1:7070", "where it listens")
	region := flag.String("region", "us-east-1", "the region that signatures name")
	origin := flag.String("cors", "", "the origin that pages may come from, or *")
	health := flag.String("health", "", "a path that answers without a signature")
	relaxed := flag.Bool("relaxed", false, "answer before anything is on the disk: for tests")
	flag.Parse()
	if flag.NArg() != 1 {
		return errors.New("usage: atrium-store [flags] FOLDER")
	}
	folder := flag.Arg(0)

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()

	if err := (meta.XattrMeta{}).Test(folder); err != nil {
		return fmt.Errorf("%s: %w", folder, err)
	}
	disk := disk{relaxed: *relaxed}
	inner, err := posix.New(folder, attributes{disk: disk}, posix.PosixOpts{
		// No other process uses the folder, so locks within the process are enough.
		ForceNoObjLockFile:  true,
		CopyObjectThreshold: 5 << 30,
	})
	if err != nil {
		return err
	}
	if err := recoverUploads(disk); err != nil {
		return err
	}
	removeTemporary()
	go removeBesideObjects(time.Now())
	return embedgw.RunVersityGW(ctx, &store{Posix: inner, disk: disk}, &embedgw.Config{
		RootUserAccess:    os.Getenv("STORE_ACCESS_KEY_ID"),
		RootUserSecret:    os.Getenv("STORE_SECRET_ACCESS_KEY"),
		Region:            *region,
		Ports:             []string{*address},
		MaxConnections:    maxConnections,
		MaxRequests:       maxRequests,
		MultipartMaxParts: maxParts,
		CORSAllowOrigin:   *origin,
		HealthPath:        *health,
		Quiet:             true,
	})
}
