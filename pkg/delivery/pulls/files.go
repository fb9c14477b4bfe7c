package pulls

import (
	"fmt"

	"github.com/manifold-dev/manifold/pkg/delivery/pulls/rewrite"
	"github.com/manifold-dev/manifold/pkg/delivery/source/git"
)

const (
	// mostFiles bounds how many manifests are looked through, mostBytes what they take.
	mostFiles = 20_000
	mostBytes = 64 << 20
)

// manifests reads what may have to be changed of a commit. Links are left alone: what they lead to has a path of its own, or lies elsewhere.
func manifests(checkout *git.Checkout, wanted rewrite.Wanted) (map[string][]byte, error) {
	out := map[string][]byte{}
	var sum int64
	err := checkout.Regular(func(name string, size int64, read func() ([]byte, error)) error {
		if !wanted.Reads(name) {
			return nil
		}
		if sum += size; sum > mostBytes || len(out) == mostFiles {
			return fmt.Errorf("%w: it has over %d manifests, or %d MiB of them; name the folder that is meant as the path", ErrContent, mostFiles, mostBytes>>20)
		}
		content, err := read()
		if err != nil {
			return fmt.Errorf("%w: %q: %w", ErrContent, name, err)
		}
		out[name] = content
		return nil
	})
	return out, err
}
