/**
 * Authorization: which key may call which route, and which conversations it can see. A conversation that a key cannot
 * see is reported as nonexistent before anything is read from disk: neither the response nor its time reveals that it
 * exists.
 */
import type { FastifyInstance, FastifyRequest, preHandlerHookHandler } from 'fastify'
import { Access } from '../../access/access.ts'
import type { OwnedConversation } from '../../access/access.ts'
import { Problem } from '../../contract/problem.ts'
import type { Scope } from '../../contract/key.ts'
import type { ProfileLimit } from './profile-limits.ts'
import { limitToProfiles, profileLimitOf } from './profile-limits.ts'
import { scopesOf } from './route-scopes.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The scopes that the route requires, from `route-scopes.ts`; set for every route that is not public. */
    scopes?: readonly Scope[]
    /** What a key that is limited to profiles may send, from `profile-limits.ts`; set for the same routes. */
    ofProfiles?: ProfileLimit
  }
  interface FastifyRequest {
    /** The permissions of its key; see `accessOf`. */
    access: Access | undefined
  }
}

export interface Authorize {
  /** Throws `forbidden` without the scope of the route, and `conversation_not_found` for a conversation that the key does not see. */
  request(request: FastifyRequest): void
  /** The same for a conversation that the body names, also if another instance has just created it. */
  conversation(access: Access, id: string): Promise<void>
}

/** `ownerOf` returns undefined for a conversation that is not known here, and `find` asks the storage for it. */
type Conversations = {
  readonly ownerOf: (id: string) => OwnedConversation | undefined
  readonly find: (id: string) => Promise<unknown>
}

const NOTHING = new Access({ id: 'none', name: 'none' }, [], { conversations: new Set() }, AbortSignal.abort())

/** Returns the permissions of a request's key: none before the key was checked. */
export const accessOf = ({ access }: Pick<FastifyRequest, 'access'>): Access => access ?? NOTHING

/** A filter for lists and the firehose; undefined for a key that sees all conversations. */
export const visibleTo = (access: Access): ((owned: OwnedConversation) => boolean) | undefined =>
  access.isLimited ? (conversation) => access.sees(conversation) : undefined

export function createAuthorize({ ownerOf, find }: Conversations): Authorize {
  const requireSeen = (access: Access, id: string) => {
    if (!access.isLimited) return // the following lookup reports more: that it was deleted, or is damaged
    const conversation = ownerOf(id.toLowerCase())
    if (conversation && access.sees(conversation)) return
    throw new Problem('conversation_not_found', `There is no conversation ${id.toLowerCase()}.`)
  }
  return {
    request(request) {
      const access = accessOf(request)
      const { config, url = '' } = request.routeOptions
      access.require(...(config.scopes ?? ['admin']))
      const { id } = (request.params ?? {}) as { id?: string } // a parameter of a route is a string
      if (id !== undefined && url.startsWith('/conversations/:id')) requireSeen(access, id)
    },
    async conversation(access, id) {
      if (access.isLimited) await find(id.toLowerCase())
      requireSeen(access, id)
    },
  }
}

/**
 * Call it before the first route is registered. Throws at startup for a route without a scope, which every key could call, or
 * without a limit for keys of profiles.
 */
export function addAccess(app: FastifyInstance): void {
  app.decorateRequest('access', undefined)
  app.addHook('onRoute', (route) => {
    const [method = '', ...others] = [route.method].flat()
    // Preflights have no key.
    if (route.config?.public || [method, ...others].every((each) => each === 'OPTIONS')) return
    const scopes = route.config?.scopes ?? scopesOf(method, route.url)
    if (!scopes) throw new Error(`${method} ${route.url} has no scope. Add it to route-scopes.ts.`)
    const ofProfiles = route.config?.ofProfiles ?? profileLimitOf(method, route.url)
    if (!ofProfiles) throw new Error(`${method} ${route.url} has no limit. Add it to profile-limits.ts.`)
    route.config = { ...route.config, scopes, ofProfiles }
    if (ofProfiles === 'free') return
    // The body has been parsed.
    route.preHandler = [[route.preHandler ?? []].flat(), limitHook(ofProfiles)].flat()
  })
}

const limitHook =
  (limit: ProfileLimit): preHandlerHookHandler =>
  ({ access, body }, _reply, next) => {
    if (access?.limits.profiles) limitToProfiles(access, limit, body)
    next()
  }
