// A person's own account over all agreements, in this browser: what they cost together never exceeds a cap that the person
// chose. Stored in IndexedDB, on disk before anything is sent. As dpmf.federated.certified.account: joining enters the whole
// agreement, a round is entered before it is answered, and nothing is ever refunded.

import { epsilonOf } from "./accounting.js";
import { Refused, hex, joined, sha256 } from "./bytes.js";

const NAME = "dpmf-ledger"; // one for all pages of an origin: their agreements are about one and the same person
const [ENTRIES, CAP] = ["entries", "cap"];
const HAIR = 1e-8; // by which an ε is rounded up here, and no more: an agreement for ε = 5 fits a limit of 5

/** Return the ledger of this browser: {cap, entries, spent, wouldSpend, enter}. */
export async function openLedger(factory = globalThis.indexedDB) {
  const database = await new Promise((resolve, reject) => {
    const asked = factory.open(NAME, 1);
    asked.onupgradeneeded = () => {
      asked.result.createObjectStore(ENTRIES, { keyPath: "run" });
      asked.result.createObjectStore(CAP, { keyPath: "name" });
    };
    asked.onsuccess = () => resolve(asked.result);
    asked.onerror = reject;
  }).catch(() => Promise.reject(new Refused("this browser keeps nothing, so it could answer a question twice")));
  database.onversionchange = () => database.close();

  const read = () => transact(database, "readonly", (stores, done) => everything(stores, done));
  const totalOf = ({ cap, entries }, more, delta) =>
    epsilonOf([...entries, ...more].flatMap(({ events }) => events), cap?.delta ?? delta);

  return {
    /** Return {epsilon, delta}: what all agreements may cost together; null before the first. */
    cap: async () => (await read()).cap,
    entries: async () => (await read()).entries,
    /** Return the ε of all agreements that were ever joined. */
    spent: async (delta) => totalOf(await read(), [], delta),
    /** Return the ε of all of them and of one more, unless it is one of them. */
    async wouldSpend(agreement) {
      const [known, run] = [await read(), await runOf(agreement)];
      const more = known.entries.some((entry) => entry.run === run) ? [] : [agreement];
      return totalOf(known, more, agreement.budget.delta);
    },
    /**
     * Enter an agreement before anything is sent, unless it is there already, and return its account.
     * @param {{epsilon: number, delta: number}} chosen the cap; it is fixed with the first agreement
     */
    async enter(agreement, chosen) {
      const run = await runOf(agreement);
      const events = agreement.events.map(({ what, noise_multiplier, count, coordinates }) =>
        ({ what, noise_multiplier, count, coordinates }));
      const entry = { run, label: agreement.name, date: new Date().toISOString(), events, started: 0, answers: [] };
      return transact(database, "readwrite", (stores, done, refuse) =>
        everything(stores, (known) => {
          const same = known.entries.find((one) => one.run === run);
          if (same) return done(accountOf(database, same));
          const cap = known.cap ?? { name: CAP, epsilon: chosen.epsilon, delta: chosen.delta };
          const total = totalOf({ ...known, cap }, [entry]);
          if (!(total <= cap.epsilon * (1 + HAIR))) {
            return refuse(new Refused(`with this agreement, all that you joined would cost ε = ${total.toPrecision(4)}: ` +
              `more than your limit of ${cap.epsilon}`));
          }
          if (!known.cap) stores(CAP).add(cap);
          stores(ENTRIES).add(entry);
          return done(accountOf(database, entry));
        }));
    },
  };
}

/** Return what tells runs apart, whatever the keys of the servers' processes. */
const runOf = async ({ id }) => hex(await sha256(joined("dpmf-run:", id)));

function accountOf(database, { run, started }) {
  return {
    lastRound: started - 1,
    /** Enter a round before it is answered, or refuse one that was begun before, in this tab or another. */
    begin: (round, bytes = 0) =>
      transact(database, "readwrite", (stores, done, refuse) => {
        stores(ENTRIES).get(run).onsuccess = ({ target: { result: entry } }) => {
          if (!entry) return refuse(new Refused("the agreement is not in this browser's ledger any more"));
          if (entry.started > round) return refuse(new Refused("the round is not a new one"));
          const answers = [...entry.answers, { round, bytes, date: new Date().toISOString() }];
          stores(ENTRIES).put({ ...entry, started: round + 1, answers });
          return done();
        };
      }),
  };
}

function everything(stores, done) {
  stores(CAP).get(CAP).onsuccess = ({ target: { result: cap } }) => {
    stores(ENTRIES).getAll().onsuccess = ({ target }) => done({ cap: cap ?? null, entries: target.result });
  };
}

/** Return what `work` hands to `done`, as soon as it is on disk; one transaction at a time, whatever the number of tabs. */
function transact(database, mode, work) {
  const lost = new Refused("this browser could not store its ledger");
  return new Promise((resolve, reject) => {
    let [found, refusal] = [undefined, null];
    const transaction = database.transaction([ENTRIES, CAP], mode, { durability: "strict" });
    transaction.oncomplete = () => resolve(found);
    transaction.onabort = () => reject(refusal ?? lost);
    const refuse = (error) => {
      refusal = error;
      transaction.abort();
    };
    work((name) => transaction.objectStore(name), (value) => (found = value), refuse);
  }).catch((error) => Promise.reject(error instanceof Refused ? error : lost));
}
