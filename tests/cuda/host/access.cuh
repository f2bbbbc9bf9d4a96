// The host's stand-in for access.cuh: there is one memory, and addresses are pointers.
#pragma once
namespace tw {
template <int Bytes, class T> inline void load_if(bool p, T* to, const void* from) { if (p) memcpy(to, from, Bytes); }
template <int Bytes, class T> inline void store_if(bool p, void* to, const T* from) { if (p) memcpy(to, from, Bytes); }
}  // namespace tw
