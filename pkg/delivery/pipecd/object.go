package pipecd

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// DescriptionAnnotation is the one of Kubernetes that says what an object is for.
const DescriptionAnnotation = "kubernetes.io/description"

// Otherwise are the fields of a file that an Application with this metadata says otherwise, which counts: an object is known before its file is.
func (a *Application) Otherwise(app *metav1.ObjectMeta) []Unhonoured {
	var out []Unhonoured
	note := func(path string, differs bool, why string) {
		if path != "" && differs {
			out = append(out, Unhonoured{Path: path, Why: why})
		}
	}
	note(a.descriptionAt, a.Description != app.Annotations[DescriptionAnnotation], "annotation "+DescriptionAnnotation+" of the Application says what it is for")
	note(a.namespaceAt, a.Input.Namespace != app.Namespace, "objects go to the namespace of the Application, "+app.Namespace)
	note(a.nameAt, a.Name != app.Name, "the Application is called "+app.Name)
	return out
}
