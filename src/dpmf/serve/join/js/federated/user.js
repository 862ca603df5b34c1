// A participant's side: ratings stay here, and what leaves is bounded, noisy and masked. As dpmf.federated.certified.user:
// whatever the recommender asks, every round of the agreement is answered once at most, with the noise that it requires.
// A server that was killed in a round asks again in another session: the same answer is masked and sealed again.

import { makeKeys, openChannel } from "./channel.js";
import { maskStream } from "./masks.js";
import { answerBytes, readInquiry } from "./messages.js";
import { makeNoise } from "./noise.js";
import { maskBytes, masked } from "./ring.js";

/**
 * Return one's ratings as questions take them: of items of the catalogue, ascending and once each, on the scale.
 * @param {{position: number, rating: number}[]} entries
 */
export function ownRatings(entries, [lowest, highest], nItems) {
  const isRating = ({ position, rating }) => position >= 0 && position < nItems && Number.isFinite(rating);
  const byItem = new Map(entries.filter(isRating).toReversed().map(({ position, rating }) => [position, rating]));
  const items = Int32Array.from(byItem.keys()).sort();
  const clipped = (rating) => Math.fround(Math.min(Math.max(rating, lowest), highest));
  return { items, values: Float64Array.from(items, (item) => clipped(byItem.get(item))) };
}

/**
 * Return {public, receive, forget, said}; `receive` takes a sealed question, and returns {round, message}: the sealed answer.
 * `earlier` is the user of the session before, whose last answer is the one that is given if its round is asked for again.
 */
export async function makeUser({ agreement, own, recommender, thirdParty, account, noise, keys, earlier }) {
  const ours = keys ?? (await makeKeys());
  const asking = await openChannel(ours, recommender);
  const adding = await openChannel(ours, thirdParty);
  const draw = noise ?? makeNoise(agreement.nShares);
  let before = Promise.resolve();
  let said = earlier?.said() ?? null;
  let again = said;

  async function answer(message) {
    const { round, seed, told } = readInquiry(await asking.open(message), agreement);
    const isAgain = again?.round === round && isSame(again.told, told);
    const { numbers } = isAgain ? again : await compute(round, told);
    again = null;
    said = { round, told, numbers };
    const { ringBytes } = agreement.rounds[round];
    const packed = masked(numbers, await maskStream(seed, numbers.length * maskBytes(ringBytes)), ringBytes);
    return { round, message: await adding.seal(answerBytes(round, packed)) };
  }

  async function compute(round, told) {
    const { questions, bytesUp } = agreement.rounds[round];
    await account.begin(round, bytesUp); // on disk before anything is drawn; refuses a round that was begun before
    const numbers = new Float64Array(questions.reduce((total, one) => total + one.size, 0));
    let place = 0;
    for (const question of questions) {
      const part = question.answer(own, told);
      const shares = draw(question.size);
      for (let at = 0; at < question.size; at++) numbers[place + at] = part[at] + shares[at];
      place += question.size;
    }
    return { numbers };
  }

  return {
    public: ours.public,
    said: () => said,
    forget(round) {
      if (said && said.round <= round) said = again = null; // it is closed: nobody has a reason to ask for it again
    },
    receive(message) {
      const next = before.then(() => answer(message)); // one after the other, as they came
      before = next.catch(() => null);
      return next;
    },
  };
}

const isSame = (one, other) =>
  Object.keys(other).every((name) => other[name].every((number, place) => Object.is(number, one[name]?.[place])));
