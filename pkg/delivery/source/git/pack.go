package git

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
)

// receive writes a pack into a new repository at dir.
func receive(pack io.Reader, dir string, limits Limits) (*os.File, error) {
	if err := newRepository(dir); err != nil {
		return nil, err
	}
	file, err := os.Create(filepath.Join(packs(dir), "incoming"))
	if err != nil {
		return nil, err
	}
	size, err := io.Copy(file, io.LimitReader(pack, limits.Pack+1))
	switch {
	case err != nil:
		err = fmt.Errorf("receive the pack: %w", err)
	case size > limits.Pack:
		err = fmt.Errorf("%w: the pack of the commit is over %d bytes", ErrTooLarge, limits.Pack)
	case size == 0:
		err = fmt.Errorf("%w: the repository sends an empty pack", ErrContent)
	default:
		return file, nil
	}
	return nil, errors.Join(err, file.Close())
}

// index measures a pack that was received into the repository at dir, and only then makes an index of it. A few bytes can claim to unpack to anything, and the
// index needs every object in memory once. It ends when ctx does.
func index(ctx context.Context, file *os.File, dir string, limits Limits) error {
	reading := patient{ctx, file}
	if err := measure(reading, limits); err != nil {
		return err
	}
	found, name, err := indexOf(reading)
	if err != nil {
		return err
	}
	if err := writeIndex(filepath.Join(packs(dir), name+".idx"), found); err != nil {
		return err
	}
	return os.Rename(file.Name(), filepath.Join(packs(dir), name+".pack"))
}

// packs is the folder of packs of the repository at dir.
func packs(dir string) string { return filepath.Join(dir, "objects", "pack") }

// patient is a file that can be read until ctx ends, for those who read without looking at one.
type patient struct {
	ctx context.Context
	io.ReadSeeker
}

// Read implements io.Reader.
func (p patient) Read(into []byte) (int, error) {
	if err := p.ctx.Err(); err != nil {
		return 0, err
	}
	return p.ReadSeeker.Read(into)
}

// measure reads a pack from its beginning and adds up what it unpacks to.
func measure(file io.ReadSeeker, limits Limits) error {
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	scanner := packfile.NewScanner(file)
	_, count, err := scanner.Header()
	if err != nil {
		return malformed(err)
	}
	if int64(count) > limits.Objects {
		return fmt.Errorf("%w: the pack holds %d objects, and %d are allowed", ErrTooLarge, count, limits.Objects)
	}
	var sum int64
	for range count {
		size, err := nextSize(scanner, limits)
		if err != nil {
			return err
		}
		if sum += size; sum > limits.Inflated {
			return fmt.Errorf("%w: the pack unpacks to over %d bytes", ErrTooLarge, limits.Inflated)
		}
	}
	return nil
}

// nextSize returns what the next object of a pack takes, at most what is allowed: itself, or what its difference to another makes.
func nextSize(scanner *packfile.Scanner, limits Limits) (int64, error) {
	header, err := scanner.NextObjectHeader()
	if err != nil {
		return 0, malformed(err)
	}
	switch listing := header.Type == plumbing.TreeObject || header.Type == plumbing.CommitObject || header.Type == plumbing.TagObject; {
	case header.Length < 0 || header.Length > limits.Object:
		return 0, tooLarge(limits)
	case listing && header.Length > limits.Listing: // what a difference makes is told apart when it is decoded
		return 0, fmt.Errorf("%w: the pack holds a %s of %d bytes, and %d are allowed", ErrTooLarge, header.Type, header.Length, limits.Listing)
	}
	head := &beginning{}
	if _, _, err := scanner.NextObject(head); err != nil {
		return 0, malformed(err)
	}
	if !header.Type.IsDelta() {
		return header.Length, nil
	}
	reader := bytes.NewReader(head.bytes)
	if _, err := binary.ReadUvarint(reader); err != nil { // the size of what the difference is to
		return 0, malformed(err)
	}
	target, err := binary.ReadUvarint(reader)
	if err != nil {
		return 0, malformed(err)
	}
	if target > uint64(limits.Object) {
		return 0, tooLarge(limits)
	}
	return header.Length + int64(target), nil
}

func tooLarge(limits Limits) error {
	return fmt.Errorf("%w: the repository holds a file of over %d MiB; keep such files elsewhere, as with Git LFS", ErrTooLarge, limits.Object>>20)
}

// beginning keeps the two numbers that a difference begins with.
type beginning struct{ bytes []byte }

func (b *beginning) Write(p []byte) (int, error) {
	if free := 2*binary.MaxVarintLen64 - len(b.bytes); free > 0 {
		b.bytes = append(b.bytes, p[:min(free, len(p))]...)
	}
	return len(p), nil
}

func malformed(err error) error {
	return fmt.Errorf("%w: the repository sends a malformed pack: %w", ErrContent, err)
}

// indexOf reads a whole pack and returns its index and the name that git gives it.
func indexOf(file io.ReadSeeker) (*idxfile.MemoryIndex, string, error) {
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return nil, "", err
	}
	writer := new(idxfile.Writer)
	parser, err := packfile.NewParser(packfile.NewScanner(file), writer)
	if err != nil {
		return nil, "", err
	}
	sum, err := parser.Parse()
	if err != nil {
		return nil, "", malformed(err)
	}
	index, err := writer.Index()
	return index, "pack-" + sum.String(), err
}

func writeIndex(name string, index *idxfile.MemoryIndex) error {
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	_, err = idxfile.NewEncoder(file).Encode(index)
	return errors.Join(err, file.Close())
}
