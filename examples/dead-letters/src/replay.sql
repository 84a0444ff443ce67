-- psql -v id=0197… -f replay.sql
-- What is dead, the newest first: an auditor may read this, and no table.
select id, queue, failed_at, failure_reason, attempts, last_error, failure_history
  from outbox_status
 where status = 'failed'
 order by failed_at desc
 limit 50;

-- One of them: replayed, not_found, already_replayed or timer_conflict. A replayer may do this, and nothing else.
select outbox_replay(event_id => :'id', p_new_generation => null, p_replayed_by => 'ann@example.org');
