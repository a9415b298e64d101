package main

import (
	"context"
	"path/filepath"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/s3response"
)

// store answers a change only once it is on the disk. `attributes` syncs the bytes before they get their name, and the
// methods here sync the names. Methods not listed here change only attributes, or nothing.
type store struct {
	*posix.Posix
	disk disk
	// uploads lets one request at a time complete an upload or list its parts. During a completion the inner store would
	// tell a second one that all is done, and a list that the upload does not exist.
	uploads turns
}

func (s *store) PutObject(ctx context.Context, input s3response.PutObjectInput) (s3response.PutObjectOutput, error) {
	output, err := s.Posix.PutObject(ctx, input)
	return output, s.named(err, *input.Bucket, input.Key)
}

func (s *store) CopyObject(ctx context.Context, input s3response.CopyObjectInput) (s3response.CopyObjectOutput, error) {
	output, err := s.Posix.CopyObject(ctx, input)
	return output, s.named(err, *input.Bucket, input.Key)
}

func (s *store) CreateMultipartUpload(
	ctx context.Context, input s3response.CreateMultipartUploadInput,
) (s3response.InitiateMultipartUploadResult, error) {
	output, err := s.Posix.CreateMultipartUpload(ctx, input)
	if err != nil {
		return output, told(err)
	}
	return output, told(s.disk.syncName(*input.Bucket, uploadFolder(*input.Bucket, *input.Key, output.UploadId)))
}

func (s *store) UploadPart(ctx context.Context, input *s3.UploadPartInput) (*s3.UploadPartOutput, error) {
	output, err := s.Posix.UploadPart(ctx, input)
	return output, s.partNamed(err, partOf{*input.Bucket, input.Key, input.UploadId, input.PartNumber})
}

func (s *store) UploadPartCopy(
	ctx context.Context, input *s3.UploadPartCopyInput,
) (s3response.CopyPartResult, error) {
	output, err := s.Posix.UploadPartCopy(ctx, input)
	return output, s.partNamed(err, partOf{*input.Bucket, input.Key, input.UploadId, input.PartNumber})
}

func (s *store) CompleteMultipartUpload(
	ctx context.Context, input *s3.CompleteMultipartUploadInput,
) (s3response.CompleteMultipartUploadResult, string, error) {
	defer s.uploads.take(input.UploadId)()
	output, version, err := s.Posix.CompleteMultipartUpload(ctx, input)
	return output, version, s.named(err, *input.Bucket, input.Key)
}

func (s *store) ListParts(ctx context.Context, input *s3.ListPartsInput) (s3response.ListPartsResult, error) {
	defer s.uploads.take(input.UploadId)()
	return s.Posix.ListParts(ctx, input)
}

func (s *store) AbortMultipartUpload(ctx context.Context, input *s3.AbortMultipartUploadInput) error {
	if err := s.Posix.AbortMultipartUpload(ctx, input); err != nil {
		return told(err)
	}
	return told(s.disk.syncRemoval(*input.Bucket, uploadFolder(*input.Bucket, *input.Key, *input.UploadId)))
}

func (s *store) DeleteObject(ctx context.Context, input *s3.DeleteObjectInput) (*s3.DeleteObjectOutput, error) {
	output, err := s.Posix.DeleteObject(ctx, input)
	if err != nil {
		return output, told(err)
	}
	return output, told(s.disk.syncRemoval(*input.Bucket, filepath.Join(*input.Bucket, *input.Key)))
}

func (s *store) DeleteObjects(ctx context.Context, input *s3.DeleteObjectsInput) (s3response.DeleteResult, error) {
	output, err := s.Posix.DeleteObjects(ctx, input)
	if err != nil {
		return output, told(err)
	}
	synced := map[string]bool{}
	for _, object := range output.Deleted {
		path := filepath.Join(*input.Bucket, *object.Key)
		if folder := filepath.Dir(path); !synced[folder] {
			synced[folder] = true
			if err := s.disk.syncRemoval(*input.Bucket, path); err != nil {
				return output, told(err)
			}
		}
	}
	return output, nil
}

func (s *store) CreateBucket(ctx context.Context, input *s3.CreateBucketInput, acl []byte) error {
	if err := s.Posix.CreateBucket(ctx, input, acl); err != nil {
		return told(err)
	}
	return told(s.disk.syncName(".", *input.Bucket))
}

func (s *store) DeleteBucket(ctx context.Context, bucket string) error {
	if err := s.Posix.DeleteBucket(ctx, bucket); err != nil {
		return told(err)
	}
	return told(s.disk.syncRemoval(".", bucket))
}

// named syncs the new name of an object, unless the request failed.
func (s *store) named(err error, bucket string, key *string) error {
	if err != nil {
		return told(err)
	}
	return told(s.disk.syncName(bucket, filepath.Join(bucket, *key)))
}

type partOf struct {
	bucket        string
	key, uploadID *string
	number        *int32
}

// partNamed syncs the name of a part. The folders above were synced when the upload began.
func (s *store) partNamed(err error, part partOf) error {
	if err != nil {
		return told(err)
	}
	folder := uploadFolder(part.bucket, *part.key, *part.uploadID)
	return told(s.disk.syncName(folder, partFile(folder, *part.number)))
}
