package git

import "time"

// Limits bound what a repository may take. Zero stands for the default.
type Limits struct {
	// Timeout bounds one call of Resolve or Fetch; 2 minutes.
	Timeout time.Duration
	// Pack bounds what is fetched for one commit, in bytes as sent; 256 MiB. Inflated bounds what it unpacks to; 2 GiB.
	Pack, Inflated int64
	// Object bounds each object unpacked, in bytes, whether anybody reads it or not, since an index takes all of it into memory; 64 MiB.
	Object int64
	// Listing bounds each folder, commit and tag, in bytes, before it is decoded, which takes several times as much; 8 MiB.
	Listing int64
	// Objects bounds their number; 500,000.
	Objects int64
	// Indexing bounds how many packs are measured and indexed at a time; 2.
	Indexing int64
	// Files bounds the number of files and folders in a commit; 100,000. Depth bounds how deep folders lie in one another; 40.
	Files, Depth int
	// File bounds a file that is read, in bytes; 16 MiB.
	File int64
	// Cache bounds what the folder holds of commits that nobody reads, in bytes; 2 GiB.
	Cache int64
}

func (l Limits) withDefaults() Limits {
	set(&l.Timeout, 2*time.Minute)
	set(&l.Pack, 256<<20)
	set(&l.Inflated, 2<<30)
	set(&l.Object, 64<<20)
	set(&l.Listing, 8<<20)
	set(&l.Objects, 500_000)
	set(&l.Indexing, 2)
	set(&l.Files, 100_000)
	set(&l.Depth, 40)
	set(&l.File, 16<<20)
	set(&l.Cache, 2<<30)
	return l
}

func set[T int | int64 | time.Duration](to *T, value T) {
	if *to <= 0 {
		*to = value
	}
}
