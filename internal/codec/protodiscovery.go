package codec

import (
	"sync"

	"orch.io/controlplane/api/meta"
)

// DiscoveryProto returns the protobuf encoding of the discovery document with the kind, or nil
// if it has none. The encoding is the same in every profile and version.
func DiscoveryProto(kind string) *Proto { return discoveryProtos()[kind] }

var discoveryProtos = sync.OnceValue(func() map[string]*Proto {
	forms := map[string]*Proto{}
	forms["APIVersions"], _ = mustProto[apiVersions]()
	forms["APIGroupList"], _ = mustProto[apiGroupList]()
	forms["APIGroup"], _ = mustProto[apiGroup]()
	forms["APIResourceList"], _ = mustProto[apiResourceList]()
	forms["APIGroupDiscoveryList"], _ = mustProto[groupDiscoveryList]()
	return forms
})

type apiVersions struct {
	meta.TypeMeta `json:",inline"`
	Versions      []string        `json:"versions" protobuf:"bytes,1,rep,name=versions"`
	Addresses     []serverAddress `json:"serverAddressByClientCIDRs" protobuf:"bytes,2,rep,name=serverAddressByClientCIDRs"`
}

type serverAddress struct {
	ClientCIDR    string `json:"clientCIDR" protobuf:"bytes,1,opt,name=clientCIDR"`
	ServerAddress string `json:"serverAddress" protobuf:"bytes,2,opt,name=serverAddress"`
}

type apiGroupList struct {
	meta.TypeMeta `json:",inline"`
	Groups        []apiGroup `json:"groups" protobuf:"bytes,1,rep,name=groups"`
}

type apiGroup struct {
	meta.TypeMeta `json:",inline"`
	Name          string            `json:"name" protobuf:"bytes,1,opt,name=name"`
	Versions      []apiGroupVersion `json:"versions" protobuf:"bytes,2,rep,name=versions"`
	Preferred     apiGroupVersion   `json:"preferredVersion,omitempty" protobuf:"bytes,3,opt,name=preferredVersion"`
	Addresses     []serverAddress   `json:"serverAddressByClientCIDRs,omitempty" protobuf:"bytes,4,rep,name=serverAddressByClientCIDRs"`
}

type apiGroupVersion struct {
	GroupVersion string `json:"groupVersion" protobuf:"bytes,1,opt,name=groupVersion"`
	Version      string `json:"version" protobuf:"bytes,2,opt,name=version"`
}

type apiResourceList struct {
	meta.TypeMeta `json:",inline"`
	GroupVersion  string        `json:"groupVersion" protobuf:"bytes,1,opt,name=groupVersion"`
	Resources     []apiResource `json:"resources" protobuf:"bytes,2,rep,name=resources"`
}

type apiResource struct {
	Name        string   `json:"name" protobuf:"bytes,1,opt,name=name"`
	Namespaced  bool     `json:"namespaced" protobuf:"varint,2,opt,name=namespaced"`
	Kind        string   `json:"kind" protobuf:"bytes,3,opt,name=kind"`
	Verbs       verbs    `json:"verbs" protobuf:"bytes,4,opt,name=verbs"`
	ShortNames  []string `json:"shortNames,omitempty" protobuf:"bytes,5,rep,name=shortNames"`
	Singular    string   `json:"singularName" protobuf:"bytes,6,opt,name=singularName"`
	Categories  []string `json:"categories,omitempty" protobuf:"bytes,7,rep,name=categories"`
	Group       string   `json:"group,omitempty" protobuf:"bytes,8,opt,name=group"`
	Version     string   `json:"version,omitempty" protobuf:"bytes,9,opt,name=version"`
	StorageHash string   `json:"storageVersionHash,omitempty" protobuf:"bytes,10,opt,name=storageVersionHash"`
}

// verbs is a message of its own in protobuf.
type verbs []string

type groupDiscoveryList struct {
	meta.TypeMeta `json:",inline"`
	meta.ListMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`
	Items         []groupDiscovery `json:"items" protobuf:"bytes,2,rep,name=items"`
}

type groupDiscovery struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`
	Versions        []versionDiscovery `json:"versions,omitempty" protobuf:"bytes,2,rep,name=versions"`
}

type versionDiscovery struct {
	Version   string              `json:"version" protobuf:"bytes,1,opt,name=version"`
	Resources []resourceDiscovery `json:"resources,omitempty" protobuf:"bytes,2,rep,name=resources"`
	Freshness string              `json:"freshness,omitempty" protobuf:"bytes,3,opt,name=freshness"`
}

type resourceDiscovery struct {
	Resource     string                 `json:"resource" protobuf:"bytes,1,opt,name=resource"`
	ResponseKind *groupVersionKind      `json:"responseKind,omitempty" protobuf:"bytes,2,opt,name=responseKind"`
	Scope        string                 `json:"scope" protobuf:"bytes,3,opt,name=scope"`
	Singular     string                 `json:"singularResource" protobuf:"bytes,4,opt,name=singularResource"`
	Verbs        []string               `json:"verbs" protobuf:"bytes,5,rep,name=verbs"`
	ShortNames   []string               `json:"shortNames,omitempty" protobuf:"bytes,6,rep,name=shortNames"`
	Categories   []string               `json:"categories,omitempty" protobuf:"bytes,7,rep,name=categories"`
	Subresources []subresourceDiscovery `json:"subresources,omitempty" protobuf:"bytes,8,rep,name=subresources"`
}

type subresourceDiscovery struct {
	Subresource   string             `json:"subresource" protobuf:"bytes,1,opt,name=subresource"`
	ResponseKind  *groupVersionKind  `json:"responseKind,omitempty" protobuf:"bytes,2,opt,name=responseKind"`
	AcceptedTypes []groupVersionKind `json:"acceptedTypes,omitempty" protobuf:"bytes,3,rep,name=acceptedTypes"`
	Verbs         []string           `json:"verbs" protobuf:"bytes,4,opt,name=verbs"`
}

type groupVersionKind struct {
	Group   string `json:"group" protobuf:"bytes,1,opt,name=group"`
	Version string `json:"version" protobuf:"bytes,2,opt,name=version"`
	Kind    string `json:"kind" protobuf:"bytes,3,opt,name=kind"`
}
