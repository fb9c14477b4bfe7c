package v1alpha1

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"k8s.io/apimachinery/pkg/util/json"
)

// HashManifest returns the hash that a manifest goes by in a revision: the SHA-256 of its JSON with sorted keys, in hexadecimal.
func HashManifest(manifest []byte) (string, error) {
	var value map[string]any
	if err := json.Unmarshal(manifest, &value); err != nil {
		return "", fmt.Errorf("hash a manifest: %w", err)
	}
	sorted, err := json.Marshal(value)
	if err != nil {
		return "", fmt.Errorf("hash a manifest: %w", err)
	}
	return hashOf(string(sorted)), nil
}

// HashObjects returns the hash of a list of objects, by their hashes: that of a target, or of a chunk.
func HashObjects(hashes []string) string {
	return hashOf(hashes...)
}

// ObjectsOf returns the hashes of the objects of the target at that place, which an earlier one of the same hash may list for it.
func ObjectsOf(targets []RevisionTarget, place int) []string {
	of := &targets[place]
	for i := range targets[:place] {
		if len(of.Objects) == 0 && targets[i].Hash == of.Hash && len(targets[i].Objects) > 0 {
			return targets[i].Objects
		}
	}
	return of.Objects
}

// HashRevision returns the hash of a revision, by its targets in their order.
func HashRevision(targets []RevisionTarget) string {
	var parts []string
	for i := range targets {
		parts = append(parts, targets[i].Name, targets[i].Hash)
	}
	return hashOf(parts...)
}

// HashWithContent returns the hash of a revision, by that of its targets and that of the files of its folder, if it is about these as well.
func HashWithContent(targets, content string) string {
	if content == "" {
		return targets
	}
	return hashOf(targets, content)
}

// hashOf puts a zero behind each part, which no part contains, so that parts cannot run into each other.
func hashOf(parts ...string) string {
	sum := sha256.New()
	for _, part := range parts {
		sum.Write([]byte(part + "\x00"))
	}
	return hex.EncodeToString(sum.Sum(nil))
}
