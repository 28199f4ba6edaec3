// Where lower bounds come from. Time: the longer of the two roofs. Energy: their sum.
import { GroupedBars, type BarRow } from "../charts/bars";
import { Figure, Legend } from "../charts/figure";
import type { Bound, Report } from "../engine/report";
import { bytes, cycles, energy, exactBytes, integer, plural } from "../format";
import { PhaseTable } from "./phase_table";

const roofs = (label: string, bound: Bound): BarRow => ({
  label,
  bars: [
    { label: "compute", value: bound.compute_cycles, paint: "paint-compute", text: cycles(bound.compute_cycles) },
    { label: "traffic", value: bound.traffic_cycles, paint: "paint-traffic", text: cycles(bound.traffic_cycles) },
  ],
});

const energies = (label: string, bound: Bound): BarRow => ({
  label,
  bars: [
    { label: "compute", value: bound.compute_pj, paint: "paint-compute", text: energy(bound.compute_pj) },
    { label: "traffic", value: bound.traffic_pj, paint: "paint-traffic", text: energy(bound.traffic_pj) },
  ],
});

const roofLegend = [
  { label: "compute", paint: "paint-compute" },
  { label: "off-chip traffic", paint: "paint-traffic" },
];

export function Bounds({ report }: { report: Report }) {
  const { bounds, hardware, step, inference } = report;
  if (!bounds || !hardware) return null;
  const both = (rows: (label: string, bound: Bound) => BarRow) => [
    ...(step ? [rows("Training step", bounds)] : []),
    rows("Inference", bounds.inference),
  ];
  return (
    <div class="pair">
      <Figure id="cycles" title="Where the time bound comes from" unit="cycles">
        <GroupedBars
          rows={both(roofs)}
          label="Cycles of compute and of off-chip traffic, for the training step and for inference"
        />
        <Legend items={roofLegend} />
        <p class="muted">
          The longer one counts: {plural(hardware.mac_units, "MAC")} a cycle against{" "}
          {integer(hardware.offchip_bits_per_cycle)} bit a cycle for the{" "}
          <span title={exactBytes(bounds.traffic_bytes)}>{bytes(bounds.traffic_bytes)}</span> that must cross the chip's
          edge.
        </p>
        <PhaseTable caption="Each phase alone, at least" cost={step ?? inference} />
      </Figure>
      <Figure id="energy" title="Where the energy bound comes from" unit="J">
        <GroupedBars
          rows={both(energies)}
          label="Energy of compute and of off-chip traffic, for the training step and for inference"
        />
        <Legend items={roofLegend} />
        <p class="muted">
          Both add up: {energy(hardware.mac_energy_pj)} a MAC, {energy(hardware.offchip_pj_per_bit)} a bit across the
          chip's edge.
        </p>
      </Figure>
    </div>
  );
}
