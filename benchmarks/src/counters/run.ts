import { writeFile } from 'node:fs/promises'
import { type Baseline, readBaseline, writeBaseline } from './baseline.ts'
import { compare } from './compare.ts'
import { type Measured, measure } from './measure.ts'
import { normalise } from './normalise.ts'
import { renderTable, renderVerdict } from './render.ts'
import { scenarios } from './scenarios.ts'
import { startCountingServer } from './server.ts'

export interface CountersWish {
  readonly json: string | null
  readonly update: boolean
}

/** Measures every scenario, prints the table, says by its result whether the gate holds: 0 or 1. */
export async function runCounters({ json, update }: CountersWish): Promise<number> {
  const former = update ? null : await readBaseline()
  const measured = await measureAll()
  if (json !== null) await writeJson(json, measured)
  if (update) await writeBaseline(measured)
  // After an update it is compared with itself: the table is the new baseline's, and the diff of the file says what changed.
  const baseline = former ?? measured
  const findings = compare(measured.scenarios, baseline.scenarios)
  console.log(`${measured.server}; the baseline was made on ${baseline.server}.\n`)
  console.log(`${renderTable(findings)}\n\n${renderVerdict(findings)}`)
  return findings.some(({ problem }) => problem !== null) ? 1 : 0
}

interface MeasuredAll extends Baseline {
  readonly scenarios: Readonly<Record<string, Measured>>
}

async function measureAll(): Promise<MeasuredAll> {
  await using server = await startCountingServer()
  const measured: [string, Measured][] = []
  for (const [index, scenario] of scenarios.entries()) {
    measured.push([scenario.name, await measure(server, scenario, `scenario_${index + 1}`)])
  }
  return { server: server.version, scenarios: Object.fromEntries(measured) }
}

async function writeJson(file: string, { server, scenarios: measured }: MeasuredAll): Promise<void> {
  const entries = Object.entries(measured).map(([name, scenario]) => [name, normalise(scenario)])
  await writeFile(file, `${JSON.stringify({ server, scenarios: Object.fromEntries(entries) }, null, 2)}\n`)
}
