import { type Contender, contenderNamed, type Settings, type Tuning } from '../contenders/catalogue.ts'

/** A contender as it takes part: with these settings, under this name for them. */
export interface Part {
  readonly contender: Contender
  readonly tuning: string
  readonly settings: Settings
  /** Messages a second, roughly. */
  readonly pace: number
}

export function partOf(contender: Contender, tuning: Tuning): Part {
  return { contender, tuning, settings: contender[tuning], pace: contender.pace[tuning] }
}

export function tuned(...names: readonly string[]): readonly Part[] {
  return names.map((name) => partOf(contenderNamed(name), 'tuned'))
}

export function atDefaults(...names: readonly string[]): readonly Part[] {
  return names.map((name) => partOf(contenderNamed(name), 'defaults'))
}
