// Package limits says what the server bears of clusters: how much it keeps of each, and for how long each may be silent.
package limits

import (
	"fmt"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Bounds say how much is kept of one cluster, so that none can fill the memory of the server.
type Bounds struct {
	// Objects and Bytes are how many are watched in one cluster, as they are sent and without what is not needed of them.
	Objects int64
	Bytes   resource.QuantityValue
}

// DefaultBounds are several times what 20,000 pods of our own and 100,000 of others take.
func DefaultBounds() Bounds {
	return Bounds{Objects: 300_000, Bytes: resource.QuantityValue{Quantity: resource.MustParse("512Mi")}}
}

// AddFlags adds the flags.
func (b *Bounds) AddFlags(fs *pflag.FlagSet) {
	fs.Int64Var(&b.Objects, "max-cluster-objects", b.Objects,
		"How many objects are watched in one cluster. One that has more is not ready, and the condition SyncerRunning tells. 0 for any number.")
	fs.Var(&b.Bytes, "max-cluster-bytes",
		"How many bytes the objects that are watched in one cluster may have together, as they are sent; in memory they have about three times as many. "+
			"One that has more is not ready, and the condition SyncerRunning tells. 0 for any number.")
}

// Validate refuses what cannot be, by the flag.
func (b *Bounds) Validate() error {
	switch {
	case b.Objects < 0:
		return fmt.Errorf("--max-cluster-objects: %d is negative", b.Objects)
	case b.Bytes.Sign() < 0:
		return fmt.Errorf("--max-cluster-bytes: %s is negative", b.Bytes.String())
	}
	return nil
}
