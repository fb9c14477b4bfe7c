package framework

import "fmt"

// Disks gives a cluster so many volumes of 1Gi for claims of a storage class that has the scenario's own name, which can grow.
func (s *Scenario) Disks(side *Side, count int) {
	s.Helper()
	manifests := []string{fmt.Sprintf(`
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: %s}
provisioner: kubernetes.io/no-provisioner
allowVolumeExpansion: true
`, s.Namespace)}
	names := []string{"storageclass/" + s.Namespace}
	for i := range count {
		name := fmt.Sprintf("%s-%d", s.Namespace, i)
		names = append(names, "persistentvolume/"+name)
		manifests = append(manifests, fmt.Sprintf(`
apiVersion: v1
kind: PersistentVolume
metadata: {name: %s}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteOnce]
  storageClassName: %s
  hostPath: {path: /tmp}
`, name, s.Namespace))
	}
	side.Apply(manifests...)
	s.Cleanup(func() {
		s.Environment.CleanupIn(s.T, side.API, append([]string{"delete", "--wait=false"}, names...)...)
	})
}
