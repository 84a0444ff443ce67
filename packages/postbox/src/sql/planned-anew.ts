/**
 * A condition that is true, and keeps Postgres from ever using a plan that was made without the values: of a named statement it makes such a plan at
 * the sixth run, and takes it from then on where it looks no dearer than those before. To a plan with the values this condition is a constant, and
 * gone before anything is planned: the same plan as without a name. Without them it costs ten million, on any table, and is never evaluated.
 * `parameter`: one that is never null, with its type.
 */
export function plannedAnew(parameter: string): string {
  return `(${parameter} is not null or (select count(*) from generate_series(1, 1000000000)) > 0)`
}
