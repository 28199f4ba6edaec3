// Access energy that grows with a memory's size, for sweeps over sizes: a hardware file's r_cost and w_cost hold for
// the size it gives, and stay as they are when only the size is changed.
//
// Law: read energy per bit = e0 x (C / 1 KB)^a x (w / 64)^-0.25 pJ, C the capacity of an instance, w the bits of its
// port; fitted to CACTI 7 (Balasubramonian et al., ACM TACO 14, 2017; plain RAM, 350 K, one read-write port) from 32 KB
// on, for high-performance (hp) and low-standby-power (lstp) cells. Errors of the fit: up to 23% (hp) and 8% (lstp);
// design styles differ by a factor of 3.
#pragma once

#include <string>
#include <vector>

#include "engine/hardware/accelerator.h"

namespace monet {

// "hp_65nm", "hp_45nm", "hp_32nm", "hp_22nm", "lstp_65nm", ...
std::vector<std::string> access_energy_laws();

// Replaces r_cost and w_cost of every on-chip memory of 32 KB and more; smaller ones (registers) keep the file's. A
// write costs what it cost in the file relative to a read (the same where the file has reads for nothing). Rounded to
// 1e-6 pJ, so that every platform gets the same. `law`: one of the names.
void apply_access_energy(Accelerator& accelerator, const std::string& law);

}  // namespace monet
