package contents

// Edition tells what a revision holds from what another one of its name would: that never changes while the edition is the same, although some of it may
// not be there yet. It is "" for a revision that is not there.
func (r *Reader) Edition(namespace, revision string) string {
	head, err := r.head(namespace, revision)
	if err != nil {
		return ""
	}
	return string(head.UID) + "/" + head.Spec.Hash
}
