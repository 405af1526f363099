#pragma once
// What all calls of oneDNN are made of: primitives one after the other, with reorders where a primitive wants another
// layout than a tensor has. Versions 2 and 3 of the library.
#include <dnnl.hpp>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/runtime/libraries/call_reader.h"
#include "engine/runtime/libraries/library_plan.h"

namespace cutaway {

dnnl::engine& oneDnnEngine();
dnnl::memory::data_type typeIn(const dnnl::memory::desc& layout);

/// A tensor's type and place in memory as the library describes them.
struct DnnlLayout {
    dnnl::memory::data_type type = dnnl::memory::data_type::f32;
    Dims sizes, strides;
    /// Sizes and strides of elements that the library reads from a dense copy, whose layout this is; null: it reads
    /// them where they lie.
    std::shared_ptr<const std::pair<Dims, Dims>> copied;

    DnnlLayout() = default;
    DnnlLayout(dnnl::memory::data_type ofType, Dims ofSizes, Dims ofStrides);
    /// Throws a refusal if the library has no such type. Elements that share memory, or lie in reverse, are copied
    /// before the library reads them (OneDnnPlan::operand): the layout is the copy's.
    explicit DnnlLayout(const CtTensor& tensor);
    dnnl::memory::desc desc() const { return {sizes, type, strides}; }
    DnnlLayout as(dnnl::memory::data_type other) const { return with(other, sizes, strides); }
    /// The same elements, counted in another way.
    DnnlLayout with(dnnl::memory::data_type ofType, Dims ofSizes, Dims ofStrides) const {
        DnnlLayout made(ofType, std::move(ofSizes), std::move(ofStrides));
        made.copied = copied;
        return made;
    }
    /// Elements from the first to the end of the last.
    int64_t extent() const;
    /// The library chooses.
    dnnl::memory::desc any() const { return {sizes, type, dnnl::memory::format_tag::any}; }
};

/// Descriptions of primitives take their arguments at once since version 3, by way of an object of their own before.
template <class Primitive, class... Arguments>
typename Primitive::primitive_desc describePrimitive(const dnnl::primitive_attr& attributes, Arguments&&... arguments) {
#if DNNL_VERSION_MAJOR >= 3
    return typename Primitive::primitive_desc(oneDnnEngine(), arguments..., attributes);
#else
    return typename Primitive::primitive_desc(typename Primitive::desc(arguments...), attributes, oneDnnEngine());
#endif
}
/// Those of gradients are told the forward's.
template <class Primitive, class Forward, class... Arguments>
typename Primitive::primitive_desc describeGradient(const dnnl::primitive_attr& attributes, const Forward& forward,
                                                    Arguments&&... arguments) {
#if DNNL_VERSION_MAJOR >= 3
    return typename Primitive::primitive_desc(oneDnnEngine(), arguments..., forward, attributes);
#else
    return
        typename Primitive::primitive_desc(typename Primitive::desc(arguments...), attributes, oneDnnEngine(), forward);
#endif
}
void appendFunction(dnnl::post_ops& ops, dnnl::algorithm function, float alpha = 0, float beta = 0);
/// Attributes with which a primitive keeps nothing of its own while it runs.
dnnl::primitive_attr callersScratch();

class OneDnnPlan final : public LibraryPlan {
  public:
    /// Where an argument of a primitive lies: in an operand or result, or at an offset of the memory that a run, or the
    /// program, or packing alone has for this call.
    struct Place {
        enum class Kind : uint8_t { Operand, Result, Scratch, Packed, Temporary } kind = Kind::Scratch;
        int64_t at = 0;
        dnnl::memory::desc layout;
    };
    using Arguments = std::vector<std::pair<int, Place>>;

    OneDnnPlan(const CtCall& call, int threads) : m_call(&call), m_threads(threads) {}

    /// Plans by `body` in this type, or in f32 where the library does not compute in it.
    template <class Body>
    void inOwnTypeOrF32(dnnl::memory::data_type type, Body&& body) {
        if (type == dnnl::memory::data_type::f32) return body(type);
        try {
            return body(type);
        } catch (const std::exception&) {
            m_needs = {};
            m_temporary = 0;
            m_laid.clear();
            m_implementations.clear();
            for (std::vector<Step>* steps : {&m_packing, &m_steps, &m_last}) steps->clear();
        }
        body(dnnl::memory::data_type::f32);
    }

    int threads() const { return m_threads; }
    /// Of the operand's elements, counted in another way.
    DnnlLayout layout(int number, const Dims& sizes, const Dims& strides) const;
    /// Of a row-major copy of the operand's elements, repeated to these sizes.
    DnnlLayout expand(int number, const Dims& sizes) const;
    /// The operand as a primitive wants it: reordered where that differs, once if it is constant.
    Place operand(int number, const DnnlLayout& given, const dnnl::memory::desc& wanted);
    /// Where a primitive leaves a result, which is reordered into place behind it.
    Place result(int number, const DnnlLayout& given, const dnnl::memory::desc& made);
    Place scratch(const dnnl::memory::desc& layout);
    /// Copies the operand's elements to a place, in its layout, unless they lie there already.
    void copyOperand(int number, const DnnlLayout& given, const Place& to);
    /// Another place's elements times a factor.
    Place scaled(const Place& from, float factor);
    template <class Description>
    void add(const dnnl::primitive& primitive, const Description& description, Arguments arguments) {
        m_implementations.emplace_back(description.impl_info_str());
        if (description.scratchpad_desc().get_size() > 0)
            arguments.emplace_back(DNNL_ARG_SCRATCHPAD, scratch(description.scratchpad_desc()));
        m_steps.push_back({primitive, std::move(arguments)});
    }
    /// To be called last.
    CtNeeds finish();

    void pack(const CtTensor* operands, std::byte* packed) const override;
    bool reads(int operand) const override { return m_readByWork.contains(operand) || uses(m_steps, operand); }
    bool packs(int operand) const override { return uses(m_packing, operand); }
    bool packsLike(const LibraryPlan& other) const override;
    void run(const LibraryRun& run) const override;
    std::vector<std::string> implementations() const override { return m_implementations; }

    /// Work of ours between primitives, with the addresses of its arguments.
    using Work = std::function<void(const std::vector<void*>& addresses, const LibraryRun& run)>;
    void add(Work work, Arguments arguments) { m_steps.push_back({{}, std::move(arguments), std::move(work), {}}); }
    /// Says that such work reads the operand where it lies, without an argument for it.
    void readByWork(int operand) { m_readByWork.insert(operand); }
    /// Records the library's name for the implementation that such work uses.
    void name(std::string implementation) { m_implementations.push_back(std::move(implementation)); }

  private:
    struct Step {
        dnnl::primitive primitive;  // none: `work`
        Arguments arguments;
        Work work;
        Dims numbers;          // of work that packs: what it was made for
        bool inPlace = false;  // of a copy: nothing is to be done where both are one place
    };
    /// An operand in another layout than it is given in.
    struct Laid {
        int operand;
        dnnl::memory::desc given;
        Place place;
    };
    static bool uses(const std::vector<Step>& steps, int operand);
    Place place(Place::Kind kind, const dnnl::memory::desc& layout);
    void reorder(const Place& from, const Place& to, std::vector<Step>& steps);
    void convert(const Place& from, const Place& to, const DnnlLayout& layout, std::vector<Step>& steps) const;
    Place copied(int number, const DnnlLayout& copy, std::vector<Step>& steps);
    /// The library's handles of memory, by step: made once, since that may write zeros behind a packed weight's end,
    /// and takes a while.
    using Handles = std::vector<std::unordered_map<int, dnnl::memory>>;
    void execute(const std::vector<Step>& steps, const LibraryRun& run, std::byte* temporary, Handles& handles) const;

    const CtCall* m_call;  // while it is built
    int m_threads;
    CtNeeds m_needs{};
    int64_t m_temporary = 0;  // bytes that packing needs
    std::vector<Step> m_packing, m_steps, m_last;
    std::set<int> m_readByWork;
    std::vector<Laid> m_laid;
    std::vector<std::string> m_implementations;
    mutable std::mutex m_mutex;
    mutable std::vector<Handles> m_idle;  // as many as have run at once
};

/// Throws for what the library computes in this type, other than f32, by its plain loops.
void refuseSlow(dnnl::memory::data_type type, const char* implementation);

/// Each throws a refusal or dnnl::error for what the library does not do.
void planProduct(const CallReader& call, OneDnnPlan& plan);
void planConvolution(const CallReader& call, OneDnnPlan& plan);
void planConvolutionGradients(const CallReader& call, OneDnnPlan& plan);
/// A primitive that leaves its results at `made`, in scratch memory.
template <class Primitive>
OneDnnPlan::Place addToScratch(OneDnnPlan& plan, const typename Primitive::primitive_desc& description,
                               const OneDnnPlan::Place& source, const OneDnnPlan::Place& weights,
                               const dnnl::memory::desc& made, OneDnnPlan::Arguments arguments) {
    const OneDnnPlan::Place place = plan.scratch(made);
    arguments.emplace_back(DNNL_ARG_SRC, source);
    arguments.emplace_back(DNNL_ARG_WEIGHTS, weights);
    arguments.emplace_back(DNNL_ARG_DST, place);
    plan.add(Primitive(description), description, std::move(arguments));
    return place;
}

/// Sums of products of bytes, in rows of one position's channels: [rows, columns] and [n, positions..., channels].
OneDnnPlan::Place planByteProduct(const CallReader& call, OneDnnPlan& plan, const dnnl::primitive_attr& attributes,
                                  OneDnnPlan::Arguments arguments);
OneDnnPlan::Place planByteConvolution(const CallReader& call, OneDnnPlan& plan, const dnnl::primitive_attr& attributes,
                                      OneDnnPlan::Arguments arguments);
/// Appends the function of each element that the call's arguments name ("" and "none": none). Its clamp, where it has
/// one with two bounds, is clampBehind's.
void appendUnary(dnnl::post_ops& ops, const CallReader& call, std::string_view name);
/// Adds a step that clamps the elements of a place, which are the result's, as that function does.
void clampBehind(OneDnnPlan& plan, const CallReader& call, std::string_view name, const OneDnnPlan::Place& made,
                 const DnnlLayout& result);
dnnl::algorithm binaryFunction(std::string_view name);

}  // namespace cutaway
