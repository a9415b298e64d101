module atrium-drivefs

go 1.25.0

require (
	github.com/hanwen/go-fuse/v2 v2.12.1
	golang.org/x/sys v0.47.0
	golang.org/x/text v0.41.0
)
