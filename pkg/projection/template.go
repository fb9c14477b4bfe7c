package projection

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash/fnv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/utils/dump"
	"k8s.io/utils/lru"
)

// TemplateHash returns what a Deployment controller labels the ReplicaSet of this pod template with, as long as it meets no hash
// collision: ComputeHash in k8s.io/kubernetes/pkg/controller/controller_utils.go by way of DeepHashObject in
// k8s.io/kubernetes/pkg/util/hash/hash.go.
//
// The controller hashes every field as it lies in memory, in which a quantity remembers whether it was ever printed, and how it was
// once written. The hash here is that of the template as it comes out of storage, so that it does not depend on who looked at it.
func TemplateHash(template *corev1.PodTemplateSpec) string { return CollidedHash(template, 0) }

// hashesKept is how many hashes are remembered.
const hashesKept = 4096

// hashes are those of templates, by what storage has of them. The same template is asked for some ten times while its pods come up, and printing all of
// it takes ten times as long as encoding it.
var hashes = lru.New(hashesKept)

// hashed is what a hash is of. Whoever writes templates is a stranger, so it takes a sum that nobody finds another template for.
type hashed struct {
	template   [sha256.Size]byte
	collisions int32
}

// CollidedHash is TemplateHash for an object that has met so many hash collisions.
func CollidedHash(template *corev1.PodTemplateSpec, collisions int32) string {
	// Encoding a quantity has it remember its text.
	encoded, err := template.DeepCopy().Marshal()
	if err != nil {
		return hashOf(template, collisions) // it cannot be stored, so nothing has its hash
	}
	key := hashed{sha256.Sum256(encoded), collisions}
	if hash, known := hashes.Get(key); known {
		return hash.(string)
	}
	var stored corev1.PodTemplateSpec
	if err := stored.Unmarshal(encoded); err != nil {
		return hashOf(template, collisions)
	}
	hash := hashOf(&stored, collisions)
	hashes.Add(key, hash)
	return hash
}

func hashOf(template *corev1.PodTemplateSpec, collisions int32) string {
	hash := fnv.New32a()
	// Hash.Write never returns an error.
	_, _ = fmt.Fprintf(hash, "%v", dump.ForHash(*template))
	if collisions > 0 {
		_, _ = hash.Write(binary.LittleEndian.AppendUint64(nil, uint64(collisions)))
	}
	return rand.SafeEncodeString(fmt.Sprint(hash.Sum32()))
}
