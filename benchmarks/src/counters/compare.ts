import { type Counter, counters, type Gate } from './counter.ts'
import type { Measurement, Measurements } from './measurement.ts'
import { unreachable } from './unreachable.ts'

/** One counter of one scenario, judged. Figures are per message; null where there is none. */
export interface Finding {
  readonly scenario: string
  readonly counter: string
  readonly value: number | null
  readonly baseline: number | null
  readonly gate: Gate
  /** Why it fails; null when it does not. */
  readonly problem: string | null
}

const headroom = 0.1
const hotSlack = 0.02
// Room for the rounding of a division, far below one statement or row in a scenario.
const epsilon = 1e-9

/** Every scenario of either side. One that is missing on a side fails: what is not measured is not guarded. */
export function compare(measured: Measurements, baseline: Measurements): readonly Finding[] {
  const names = new Set([...Object.keys(measured), ...Object.keys(baseline)])
  return [...names].flatMap((scenario) => compareScenario(scenario, measured[scenario], baseline[scenario]))
}

function compareScenario(
  scenario: string,
  measured: Measurement | undefined,
  baseline: Measurement | undefined,
): readonly Finding[] {
  const whole = { scenario, counter: 'messages', gate: 'exact' as const }
  const [value, expected] = [measured?.messages ?? null, baseline?.messages ?? null]
  if (measured === undefined || baseline === undefined || value !== expected) {
    return [{ ...whole, value, baseline: expected, problem: scenarioProblem(measured, baseline) }]
  }
  return counters
    .map((counter) => judge(scenario, counter, { measured, baseline }))
    .filter((finding) => finding.value !== null || finding.baseline !== null)
}

function scenarioProblem(measured: Measurement | undefined, baseline: Measurement | undefined): string {
  if (measured === undefined) return 'was not measured'
  if (baseline === undefined) return 'is not in the baseline'
  return 'the scenario has another size than in the baseline'
}

function judge(
  scenario: string,
  { name, gates, figure }: Counter,
  { measured, baseline }: { readonly measured: Measurement; readonly baseline: Measurement },
): Finding {
  const [value, expected] = [figure(measured), figure(baseline)]
  const gate = gates[measured.workload]
  return {
    scenario,
    counter: name,
    value,
    baseline: expected,
    gate,
    problem: problemOf(gate, value, expected),
  }
}

function problemOf(gate: Gate, value: number | null, baseline: number | null): string | null {
  if (gate === 'shown' || (value === null && baseline === null)) return null
  // A baseline from before a counter existed gives NaN, which no comparison below would refuse.
  if (baseline === null || !Number.isFinite(baseline)) return 'is not in the baseline'
  if (value === null || !Number.isFinite(value)) return 'was not measured'
  switch (gate) {
    case 'exact':
      return Math.abs(value - baseline) <= epsilon ? null : 'differs'
    case 'ceiling':
      return value <= baseline * (1 + headroom) + epsilon ? null : 'more than a tenth above'
    case 'floor':
      return value >= baseline - hotSlack - epsilon ? null : 'more than 0.02 below'
    default:
      return unreachable(gate)
  }
}
