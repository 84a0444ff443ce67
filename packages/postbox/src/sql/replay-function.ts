import { historyLimit } from '../core/failure-history.ts'
import type { ExpectedRoutine } from '../core/schema-surface.ts'
import { literal, type Names } from './names.ts'
import { mostReplayTries, replaySql } from './replay-dead-letter.ts'

const argumentTypes = '(uuid, bigint, text)'

/**
 * The function by which a person with a SQL client replays a dead letter, and may do nothing else: it runs with the rights of whoever made it.
 * For the same reason nothing in it is looked up where the caller could put something: tables are qualified, all else is Postgres' own, and
 * the caller's temporary objects come last. Plans are made for the tables as they are: a session of psql may be older than the dead letters.
 */
export function replayFunction(names: Names): ExpectedRoutine {
  return {
    name: names.replay,
    argumentTypes,
    arguments: 'event_id uuid, p_new_generation bigint, p_replayed_by text',
    result: 'text',
    traits: ['plpgsql', 'volatile', 'parallel unsafe', 'called on null', 'security definer'],
    settings: ['search_path=pg_catalog, pg_temp', 'plan_cache_mode=force_custom_plan'],
    body: bodyOf(names),
  }
}

/** `replace`: over one with the same arguments and result, which keeps its owner and its grants. */
export function createReplayFunction(names: Names, { replace }: { readonly replace: boolean }): string {
  const { name, arguments: given, result, body } = replayFunction(names)
  return `create ${replace ? 'or replace ' : ''}function ${name}(${given})
  returns ${result}
  language plpgsql volatile parallel unsafe called on null input security definer
  set search_path = pg_catalog, pg_temp
  set plan_cache_mode = force_custom_plan
as ${dollarQuoted(body)}`
}

/** Postgres lets everybody execute a function that was just made. */
export function revokeReplayFunction(names: Names): string {
  return `revoke all on function ${names.replay}${argumentTypes} from public`
}

/**
 * The statement of `deadLetters.replay`, and its tries. Arguments go by number: by name they could be taken for columns, of which a table may
 * have others than ours. Whether anybody sleeps is not asked, because where everybody shares one session the answer means nothing.
 */
function bodyOf(names: Names): string {
  const terms = {
    id: '$1::uuid',
    by: '$3::text',
    generation: '$2::bigint',
    delayMs: '0::float8',
    historyLimit: String(historyLimit),
    operation: 'null::text',
  }
  return `
#variable_conflict use_column
declare
  answer text;
  lands_at text;
  told int;
  tries int := 0;
begin
${refusals(names)}
  loop
    tries := tries + 1;
    begin
${replaySql(names, terms, 'always').slice(1)}
  into answer, lands_at, told;
      return answer;
    exception when unique_violation then
      -- A timer of the same name was armed meanwhile: the next try finds it.
      if tries = ${mostReplayTries} then
        raise;
      end if;
    end;
  end loop;
end
`
}

/** What `deadLetters.replay` refuses, before anything is looked at. */
function refusals(names: Names): string {
  const example = `select ${names.replay}(event_id => '0190163d-8694-739b-9aea-966c26f8ad91', p_new_generation => null, p_replayed_by => 'ann');`
  const refuse = (condition: string, sentence: string, got: string): string => `  if ${condition} then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = ${literal(`expected ${sentence}, got `)} || coalesce(${got}, 'null'),
      hint = ${literal(`Say which dead letter, and who replays it: ${example}`)};
  end if;`
  return [
    refuse('$1 is null', 'event_id to be the UUID of a message', '$1::text'),
    refuse(
      '$2 < 0 or $2 > 9007199254740991',
      'p_new_generation to be a whole number of at least 0 that JavaScript can hold, or null for the one it had',
      '$2::text',
    ),
    refuse(
      `coalesce(octet_length($3), 0) not between 1 and 255`,
      'p_replayed_by to be who replays, in 1 to 255 bytes',
      `quote_literal(left($3, 40))`,
    ),
  ].join('\n')
}

/** As it is, between marks that are not in it: names of tables may hold anything. */
function dollarQuoted(text: string): string {
  let mark = '$postbox$'
  for (let count = 1; text.includes(mark); count++) mark = `$postbox${count}$`
  return `${mark}${text}${mark}`
}
