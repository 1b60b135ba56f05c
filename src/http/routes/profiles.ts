/** Routes for profiles: any key sees which it may use, and those with the scope `admin` what they say. */
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod'
import { z } from 'zod'
import { ProfileName } from '../../contract/conversations/given-fields.ts'
import { Profile, ProfileList, PutProfile } from '../../contract/profile.ts'
import type { Profiles } from '../../conversations/profiles/profiles.ts'
import type { ConversationManager } from '../../conversations/manager.ts'
import { accessOf } from '../guards/authorize.ts'
import { usableProfiles } from '../guards/usable-profiles.ts'
import { describeRoute } from '../openapi/describe-route.ts'

const ByName = z.strictObject({ name: ProfileName })

type ProfileDeps = { readonly profiles: () => Promise<Profiles>; readonly manager: ConversationManager }

export const profileRoutes: FastifyPluginAsyncZod<ProfileDeps> = async (app, { profiles, manager }) => {
  const describe = describeRoute('profiles')

  app.get(
    '/profiles',
    { schema: { ...describe('listProfiles', 'List the profiles'), response: { 200: ProfileList } } },
    async (request) => (await profiles()).list(await usableProfiles(manager, accessOf(request))),
  )

  app.get(
    '/profiles/:name',
    {
      schema: {
        ...describe('getProfile', 'Get a profile', ['profile_not_found']),
        params: ByName,
        response: { 200: Profile },
      },
    },
    async (request) => (await profiles()).get(request.params.name),
  )

  app.put(
    '/profiles/:name',
    {
      schema: {
        ...describe('putProfile', 'Store a profile, or replace it as a whole', ['limit_reached', 'storage_full']),
        params: ByName,
        body: PutProfile,
        response: { 200: Profile.describe('Replaced.'), 201: Profile.describe('New.') },
      },
    },
    async (request, reply) => {
      const { name } = request.params
      const isNew = await (await profiles()).put(name, request.body)
      return reply.code(isNew ? 201 : 200).send(await (await profiles()).get(name))
    },
  )

  app.delete(
    '/profiles/:name',
    {
      schema: {
        ...describe('deleteProfile', 'Delete a profile; conversations that were made from it are not changed', [
          'profile_not_found',
        ]),
        params: ByName,
        response: { 204: z.undefined().describe('The profile is deleted.') },
      },
    },
    async (request, reply) => {
      await (await profiles()).delete(request.params.name)
      return reply.code(204).send()
    },
  )
}
