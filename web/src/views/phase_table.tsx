// What each phase of a step costs.
import { phases, type Cost } from "../engine/report";
import { cycles, energy } from "../format";

export function PhaseTable({ caption, cost }: { caption: string; cost: Cost | null }) {
  return (
    <table class="plain phases">
      <caption>{caption}</caption>
      <thead>
        <tr>
          <th scope="col">Phase</th>
          <th scope="col">Cycles</th>
          <th scope="col">Energy</th>
        </tr>
      </thead>
      <tbody>
        {phases.map((phase) => {
          const of = cost?.phases[phase];
          return (
            of && (
              <tr key={phase}>
                <th scope="row">{phase}</th>
                <td>{cycles(of.latency_cycles)}</td>
                <td>{energy(of.energy_pj)}</td>
              </tr>
            )
          );
        })}
      </tbody>
    </table>
  );
}
