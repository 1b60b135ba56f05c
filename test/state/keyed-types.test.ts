/** Of which requests a repetition is recognized when their events are read again from the log. */
import { expect, test } from 'vitest'
import { Event } from '../../src/contract/events/event.ts'
import { KEYED_TYPES } from '../../src/state/idempotency.ts'

test('the events that are searched for a key are those that may have one', () => {
  const withKey = Event.options.flatMap((option) =>
    'shape' in option && 'idempotency_key' in option.shape && 'body_hash' in option.shape
      ? [option.shape.type.value]
      : [],
  )
  // The requests that write files look their keys up by themselves.
  expect(new Set(withKey)).toEqual(new Set([...KEYED_TYPES, 'FileUpdate']))
})
