// Registers, barriers of part of a CTA, dependent launches.
#pragma once

#include "chord/abi/scalar.h"

namespace chord::device::ptx {

template <int Registers>
inline void setmaxnreg_inc() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Registers));
}

template <int Registers>
inline void setmaxnreg_dec() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Registers));
}

// The same value, of which ptxas knows nothing: what follows from it is computed where it is used
// and not kept in registers through a loop around.
inline int opaque(int value) {
  int same;
  asm volatile("mov.b32 %0, %1;" : "=r"(same) : "r"(value));
  return same;
}

template <int Barrier, int Threads>
inline void bar_sync() {
  asm volatile("bar.sync %0, %1;" ::"n"(Barrier), "n"(Threads) : "memory");
}

// Arrives without waiting, for those that wait in bar_sync.
template <int Barrier, int Threads>
inline void bar_arrive() {
  asm volatile("bar.arrive %0, %1;" ::"n"(Barrier), "n"(Threads) : "memory");
}

// The same of a barrier chosen at run time.
template <int Threads>
inline void bar_sync(int barrier) {
  asm volatile("bar.sync %0, %1;" ::"r"(barrier), "n"(Threads) : "memory");
}

template <int Threads>
inline void bar_arrive(int barrier) {
  asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "n"(Threads) : "memory");
}

// Nothing before it may read what an earlier kernel of the stream writes.
inline void griddepcontrol_wait() { asm volatile("griddepcontrol.wait;" ::: "memory"); }

inline void griddepcontrol_launch_dependents() {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

}  // namespace chord::device::ptx
